#pragma once

namespace stretto::kernels {

// Update rules of optimizers, per element. p: parameter, g: gradient.

// scale * g + weight_decay * p, the gradient that a rule uses.
struct ScaledGradient {
  double scale;         // 1 / global count, clipping
  double weight_decay;  // coupled weight decay; 0 if it is decoupled
};

// m, v: means of the gradient and of its square.
//   p = decay * p - (of_gradient * g + of_mean * m) / (sqrt(v) * root_factor + eps)
struct AdamRule {
  ScaledGradient gradient;
  double beta1, beta2, eps, decay, root_factor, of_gradient, of_mean;
};

//   u = max(beta2 * u, |g| + eps)
//   p -= lr * m / u
struct AdamaxRule {
  ScaledGradient gradient;
  double beta1, beta2, eps, lr;
};

// v: mean of the squares.
//   p -= lr * g / (sqrt(v) + eps), or with momentum
//   b = momentum * b + g / (sqrt(v) + eps);  p -= lr * b
struct RmspropRule {
  ScaledGradient gradient;
  double alpha, eps, momentum, lr;
};

// s: sum of the squares.
//   p -= lr * g / (sqrt(s) + eps)
struct AdagradRule {
  ScaledGradient gradient;
  double eps, lr;
};

// v, a: means of the squares of g and of delta.
//   delta = sqrt((a + eps) / (v + eps)) * g
//   p -= lr * delta
struct AdadeltaRule {
  ScaledGradient gradient;
  double rho, eps, lr;
};

// a: the mean of p.
//   p = decay * p - lr * g
//   a += mu * (p - a)
struct AsgdRule {
  ScaledGradient gradient;
  double decay, lr, mu;
};

// s: the step size, within [least, most]. It is multiplied by `more` if g has the sign of the previous
// gradient; if g has the opposite sign, it is multiplied by `less`, and p is not updated.
//   p -= sign(g) * s
struct RpropRule {
  ScaledGradient gradient;
  double less, more, least, most;
};

// b: the momentum buffer.
//   b = keep * b + take * g
//   p -= of_gradient * g + of_buffer * b
struct SgdRule {
  ScaledGradient gradient;
  double keep, take, of_gradient, of_buffer;
};

}  // namespace stretto::kernels
