#pragma once

namespace stretto::kernels {

// Update rules of optimizers, per element. p: parameter, g: gradient.

// scale * g + weight_decay * p, the gradient that a rule uses.
struct ScaledGradient {
  double scale;         // 1 / global count, clipping
  double weight_decay;  // coupled weight decay; 0 if it is decoupled
};

// m, v: means of the gradient and of its square.  p = decay * p - (of_gradient * g + of_mean * m) / (sqrt(v)
// * root_factor + eps)
struct AdamRule {
  ScaledGradient gradient;
  double beta1, beta2, eps, decay, root_factor, of_gradient, of_mean;
};

// u = max(beta2 * u, |g| + eps).  p -= lr * m / u
struct AdamaxRule {
  ScaledGradient gradient;
  double beta1, beta2, eps, lr;
};

// v: mean of the squares.  p -= lr * g / (sqrt(v) + eps), or with momentum lr * b, where b = momentum * b +
// that quotient
struct RmspropRule {
  ScaledGradient gradient;
  double alpha, eps, momentum, lr;
};

// s: sum of the squares.  p -= lr * g / (sqrt(s) + eps)
struct AdagradRule {
  ScaledGradient gradient;
  double eps, lr;
};

// delta = sqrt((a + eps) / (v + eps)) * g, where v and a are means of the squares of g and delta.  p -= lr *
// delta
struct AdadeltaRule {
  ScaledGradient gradient;
  double rho, eps, lr;
};

// p = decay * p - lr * g.  a, the mean of p: a += mu * (p - a)
struct AsgdRule {
  ScaledGradient gradient;
  double decay, lr, mu;
};

// s, the step size, is multiplied by `more` if g has the sign of the previous gradient; if it has the
// opposite one, by `less`, and p is not updated. s stays within [least, most]. p -= sign(g) * s
struct RpropRule {
  ScaledGradient gradient;
  double less, more, least, most;
};

// b = keep * b + take * g.  p -= of_gradient * g + of_buffer * b
struct SgdRule {
  ScaledGradient gradient;
  double keep, take, of_gradient, of_buffer;
};

}  // namespace stretto::kernels
