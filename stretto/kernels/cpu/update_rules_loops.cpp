#include "stretto/kernels/cpu/update_rules_loops.h"

#include <cmath>

#include "stretto/kernels/cpu/half.h"
#include "stretto/kernels/cpu/multiarch.h"

namespace stretto::kernels {
namespace {

// Inlined into the functions below: target_clones does not apply to templates.

template <class R>
struct Gradient {
  R scale, weight_decay;
  explicit Gradient(const ScaledGradient& rule)
      : scale(static_cast<R>(rule.scale)), weight_decay(static_cast<R>(rule.weight_decay)) {}
  STRETTO_INLINE R operator()(R g, R p) const { return g * scale + weight_decay * p; }
};

template <class R>
STRETTO_INLINE void adam_body(R* __restrict p, R* __restrict g, R* __restrict m, R* __restrict v, int64_t n,
                              const AdamRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto beta1 = static_cast<R>(rule.beta1), beta2 = static_cast<R>(rule.beta2),
             decay = static_cast<R>(rule.decay), eps = static_cast<R>(rule.eps),
             root_factor = static_cast<R>(rule.root_factor), of_gradient = static_cast<R>(rule.of_gradient),
             of_mean = static_cast<R>(rule.of_mean);
  for (int64_t i = 0; i < n; ++i) {
    const R grad = gradient(g[i], p[i]);
    m[i] = beta1 * m[i] + (1 - beta1) * grad;
    v[i] = beta2 * v[i] + (1 - beta2) * grad * grad;
    p[i] = p[i] * decay - (of_gradient * grad + of_mean * m[i]) / (std::sqrt(v[i]) * root_factor + eps);
    g[i] = 0;
  }
}

template <class R>
STRETTO_INLINE void adamax_body(R* __restrict p, R* __restrict g, R* __restrict m, R* __restrict u, int64_t n,
                                const AdamaxRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto beta1 = static_cast<R>(rule.beta1), beta2 = static_cast<R>(rule.beta2),
             eps = static_cast<R>(rule.eps), lr = static_cast<R>(rule.lr);
  for (int64_t i = 0; i < n; ++i) {
    const R grad = gradient(g[i], p[i]), old = beta2 * u[i], now = std::abs(grad) + eps;
    m[i] = beta1 * m[i] + (1 - beta1) * grad;
    u[i] = old > now ? old : now;
    p[i] -= lr * m[i] / u[i];
    g[i] = 0;
  }
}

template <class R>
STRETTO_INLINE void rmsprop_body(R* __restrict p, R* __restrict g, R* __restrict v, R* __restrict b,
                                 int64_t n, const RmspropRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto alpha = static_cast<R>(rule.alpha), eps = static_cast<R>(rule.eps),
             momentum = static_cast<R>(rule.momentum), lr = static_cast<R>(rule.lr);
  for (int64_t i = 0; i < n; ++i) {
    const R grad = gradient(g[i], p[i]);
    v[i] = alpha * v[i] + (1 - alpha) * grad * grad;
    R step = grad / (std::sqrt(v[i]) + eps);
    if (b != nullptr) b[i] = step = momentum * b[i] + step;
    p[i] -= lr * step;
    g[i] = 0;
  }
}

template <class R>
STRETTO_INLINE void adagrad_body(R* __restrict p, R* __restrict g, R* __restrict s, int64_t n,
                                 const AdagradRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto eps = static_cast<R>(rule.eps), lr = static_cast<R>(rule.lr);
  for (int64_t i = 0; i < n; ++i) {
    const R grad = gradient(g[i], p[i]);
    s[i] += grad * grad;
    p[i] -= lr * grad / (std::sqrt(s[i]) + eps);
    g[i] = 0;
  }
}

template <class R>
STRETTO_INLINE void adadelta_body(R* __restrict p, R* __restrict g, R* __restrict v, R* __restrict a,
                                  int64_t n, const AdadeltaRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto rho = static_cast<R>(rule.rho), eps = static_cast<R>(rule.eps), lr = static_cast<R>(rule.lr);
  for (int64_t i = 0; i < n; ++i) {
    const R grad = gradient(g[i], p[i]);
    v[i] = rho * v[i] + (1 - rho) * grad * grad;
    const R delta = std::sqrt((a[i] + eps) / (v[i] + eps)) * grad;
    a[i] = rho * a[i] + (1 - rho) * delta * delta;
    p[i] -= lr * delta;
    g[i] = 0;
  }
}

template <class R>
STRETTO_INLINE void asgd_body(R* __restrict p, R* __restrict g, R* __restrict a, int64_t n,
                              const AsgdRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto decay = static_cast<R>(rule.decay), lr = static_cast<R>(rule.lr), mu = static_cast<R>(rule.mu);
  const bool copies = mu == 1;
  for (int64_t i = 0; i < n; ++i) {
    p[i] = decay * p[i] - lr * gradient(g[i], p[i]);
    a[i] = copies ? p[i] : a[i] + mu * (p[i] - a[i]);
    g[i] = 0;
  }
}

template <class R>
STRETTO_INLINE void rprop_body(R* __restrict p, R* __restrict g, R* __restrict before, R* __restrict s,
                               int64_t n, const RpropRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto less = static_cast<R>(rule.less), more = static_cast<R>(rule.more),
             least = static_cast<R>(rule.least), most = static_cast<R>(rule.most);
  for (int64_t i = 0; i < n; ++i) {
    const R grad = gradient(g[i], p[i]), agreement = grad * before[i];
    R step = s[i] * (agreement > 0 ? more : agreement < 0 ? less : R{1});
    step = step < least ? least : step;
    step = step > most ? most : step;
    const R used = agreement < 0 ? R{0} : grad;
    s[i] = step;
    p[i] -= used == 0 ? R{0} : std::copysign(step, used);
    before[i] = used;
    g[i] = 0;
  }
}

template <class R>
STRETTO_INLINE void sgd_body(R* __restrict p, R* __restrict g, R* __restrict b, int64_t n,
                             const SgdRule& rule) {
  const Gradient<R> gradient(rule.gradient);
  const auto keep = static_cast<R>(rule.keep), take = static_cast<R>(rule.take),
             of_gradient = static_cast<R>(rule.of_gradient), of_buffer = static_cast<R>(rule.of_buffer);
  for (int64_t i = 0; i < n; ++i) {
    const R grad = gradient(g[i], p[i]);
    R step = of_gradient * grad;
    if (b != nullptr) {
      b[i] = keep * b[i] + take * grad;
      step += of_buffer * b[i];
    }
    p[i] -= step;
    g[i] = 0;
  }
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): R is a type
#define STRETTO_DEFINE_RULES(R)                                                                              \
  STRETTO_MULTIARCH void adam_rule_loop(R* p, R* g, R* m, R* v, int64_t n, const AdamRule& rule) {           \
    adam_body(p, g, m, v, n, rule);                                                                          \
  }                                                                                                          \
  STRETTO_MULTIARCH void adamax_rule_loop(R* p, R* g, R* m, R* u, int64_t n, const AdamaxRule& rule) {       \
    adamax_body(p, g, m, u, n, rule);                                                                        \
  }                                                                                                          \
  STRETTO_MULTIARCH void rmsprop_rule_loop(R* p, R* g, R* v, int64_t n, const RmspropRule& rule) {           \
    rmsprop_body<R>(p, g, v, nullptr, n, rule);                                                              \
  }                                                                                                          \
  STRETTO_MULTIARCH void rmsprop_momentum_loop(R* p, R* g, R* v, R* b, int64_t n, const RmspropRule& rule) { \
    rmsprop_body(p, g, v, b, n, rule);                                                                       \
  }                                                                                                          \
  STRETTO_MULTIARCH void adagrad_rule_loop(R* p, R* g, R* s, int64_t n, const AdagradRule& rule) {           \
    adagrad_body(p, g, s, n, rule);                                                                          \
  }                                                                                                          \
  STRETTO_MULTIARCH void adadelta_rule_loop(R* p, R* g, R* v, R* a, int64_t n, const AdadeltaRule& rule) {   \
    adadelta_body(p, g, v, a, n, rule);                                                                      \
  }                                                                                                          \
  STRETTO_MULTIARCH void asgd_rule_loop(R* p, R* g, R* a, int64_t n, const AsgdRule& rule) {                 \
    asgd_body(p, g, a, n, rule);                                                                             \
  }                                                                                                          \
  STRETTO_MULTIARCH void rprop_rule_loop(R* p, R* g, R* before, R* s, int64_t n, const RpropRule& rule) {    \
    rprop_body(p, g, before, s, n, rule);                                                                    \
  }                                                                                                          \
  STRETTO_MULTIARCH void sgd_rule_loop(R* p, R* g, int64_t n, const SgdRule& rule) {                         \
    sgd_body<R>(p, g, nullptr, n, rule);                                                                     \
  }                                                                                                          \
  STRETTO_MULTIARCH void sgd_momentum_loop(R* p, R* g, R* b, int64_t n, const SgdRule& rule) {               \
    sgd_body(p, g, b, n, rule);                                                                              \
  }
// NOLINTEND(bugprone-macro-parentheses)
STRETTO_DEFINE_RULES(float)
STRETTO_DEFINE_RULES(double)
#undef STRETTO_DEFINE_RULES

}  // namespace stretto::kernels
