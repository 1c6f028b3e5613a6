#pragma once

#include <cstdint>

#include "stretto/kernels/rule_types.h"

namespace stretto::kernels {

// Apply the rules of rule_types.h to `n` numbers: parameters p, gradients g, which are zeroed, and state.
// Ranges do not overlap.
// NOLINTBEGIN(bugprone-macro-parentheses): R is a type
#define STRETTO_DECLARE_RULES(R)                                                          \
  void adam_rule_loop(R* p, R* g, R* m, R* v, int64_t n, const AdamRule& rule);           \
  void adamax_rule_loop(R* p, R* g, R* m, R* u, int64_t n, const AdamaxRule& rule);       \
  void rmsprop_rule_loop(R* p, R* g, R* v, int64_t n, const RmspropRule& rule);           \
  void rmsprop_momentum_loop(R* p, R* g, R* v, R* b, int64_t n, const RmspropRule& rule); \
  void adagrad_rule_loop(R* p, R* g, R* s, int64_t n, const AdagradRule& rule);           \
  void adadelta_rule_loop(R* p, R* g, R* v, R* a, int64_t n, const AdadeltaRule& rule);   \
  void asgd_rule_loop(R* p, R* g, R* a, int64_t n, const AsgdRule& rule);                 \
  void rprop_rule_loop(R* p, R* g, R* before, R* s, int64_t n, const RpropRule& rule);    \
  void sgd_rule_loop(R* p, R* g, int64_t n, const SgdRule& rule);                         \
  void sgd_momentum_loop(R* p, R* g, R* b, int64_t n, const SgdRule& rule)
STRETTO_DECLARE_RULES(float);
STRETTO_DECLARE_RULES(double);
#undef STRETTO_DECLARE_RULES
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace stretto::kernels
