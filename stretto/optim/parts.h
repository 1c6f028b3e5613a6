#pragma once

#include "stretto/optim/elementwise.h"

namespace stretto::kernels {
struct ScaledGradient;
}

namespace stretto::optim {

// Base of elementwise optimizers that are implemented with ATen's operators and, for the CPU, by a one-pass
// rule (kernels/update_rules.h). Ranges are updated in parts that fit into the cache, so that several passes
// read memory once.
class PartwiseOptimizer : public ElementwiseOptimizer {
 protected:
  struct Part {
    Tensor master;
    Tensor grad;                // already scaled; the rule may overwrite it
    Tensor compute;             // rewritten from master after the rule; may be undefined
    std::vector<Tensor> state;  // in the order of state_names()
    double weight_decay;        // of this part
    double lr;                  // includes lr_factor
    double lr_factor;
    std::optional<double> momentum;  // the schedule's
    int64_t step;                    // 1 at the first

    // The gradient of one-pass rules.
    kernels::ScaledGradient gradient(double grad_scale, bool decoupled = false) const;
    // Weight decay, either coupled, that is, as a part of the gradient, or decoupled from it (Loshchilov &
    // Hutter 2019).
    void add_weight_decay() const { apply_weight_decay(/*decoupled=*/false); }
    void apply_weight_decay(bool decoupled) const {
      if (weight_decay == 0) return;
      decoupled ? Tensor(master).mul_(1 - lr * weight_decay) : Tensor(grad).add_(master, weight_decay);
    }
  };

  PartwiseOptimizer(const StepRates& base, double weight_decay)
      : ElementwiseOptimizer(base), weight_decay_(weight_decay) {}
  // The update rule of master and state; the caller scales and zeroes the gradient and writes the compute
  // copy.
  virtual void step_part(const Part& part) = 0;
  // The update rule in one pass over memory. part.grad is unscaled, and zeroed by the pass. Returns false and
  // changes nothing if there is no such pass for these settings or this device.
  virtual bool step_in_one_pass(const Part& /*part*/, double /*grad_scale*/) { return false; }

 private:
  void step_range(const Range& range, const StepRates& rates, double grad_scale, int64_t step) final;

  double weight_decay_;
};

}  // namespace stretto::optim
