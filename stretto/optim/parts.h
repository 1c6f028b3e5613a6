#pragma once

#include "stretto/optim/elementwise.h"

namespace stretto::kernels {
struct ScaledGradient;
}

namespace stretto::optim {

// Base of the element-wise optimizers that are written with ATen's operators, and for the CPU as a rule of one pass
// (kernels/update_rules.h). Ranges are stepped in parts that fit the cache, so that several passes read memory once.
class PartwiseOptimizer : public ElementwiseOptimizer {
 protected:
  struct Part {
    Tensor master;
    Tensor grad;                // scaled already; the rule may use it as it likes
    Tensor compute;             // rewritten from master after the rule; undefined where there is none
    std::vector<Tensor> state;  // in the order of state_names()
    double weight_decay;        // of this part
    double lr;                  // with its lr_factor
    double lr_factor;
    std::optional<double> momentum;  // the schedule's
    int64_t step;                    // 1 at the first

    // What the one-pass rules take as the gradient.
    kernels::ScaledGradient gradient(double grad_scale, bool decoupled = false) const;
    // As a part of the gradient, which is the usual way, or decoupled from it (Loshchilov & Hutter 2019).
    void add_weight_decay() const { apply_weight_decay(/*decoupled=*/false); }
    void apply_weight_decay(bool decoupled) const {
      if (weight_decay == 0) return;
      decoupled ? Tensor(master).mul_(1 - lr * weight_decay) : Tensor(grad).add_(master, weight_decay);
    }
  };

  PartwiseOptimizer(const StepRates& base, double weight_decay)
      : ElementwiseOptimizer(base), weight_decay_(weight_decay) {}
  // The update rule. Compute copy and gradient are taken care of.
  virtual void step_part(const Part& part) = 0;
  // The same in one pass over memory. part.grad is not scaled yet, and zeros afterwards. False, and nothing is changed: there is no such pass
  // for these settings or this device.
  virtual bool step_in_one_pass(const Part& /*part*/, double /*grad_scale*/) { return false; }

 private:
  void step_range(const Range& range, const StepRates& rates, double grad_scale, int64_t step) final;

  double weight_decay_;
};

}  // namespace stretto::optim
