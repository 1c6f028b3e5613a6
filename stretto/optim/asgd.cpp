#include <algorithm>
#include <cmath>

#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Asgd : public PartwiseOptimizer {
 public:
  explicit Asgd(const AsgdOptions& options)
      : PartwiseOptimizer({options.lr}, options.weight_decay), options_(options) {}
  std::string name() const override { return "ASGD"; }

 private:
  std::vector<std::string> state_names() const override { return {"ax"}; }

  // As in torch, a change of lr takes effect in the next step.
  void begin_step(const StepRates& rates, int64_t) override {
    if (previous_lr_ == 0) previous_lr_ = rates.lr;
  }
  void end_step(const StepRates& rates) override { previous_lr_ = rates.lr; }
  void add_scalars(nlohmann::json& scalars) const override { scalars["previous_lr"] = previous_lr_; }
  void read_scalars(const nlohmann::json& scalars) override {
    scalars.at("previous_lr").get_to(previous_lr_);
  }

  kernels::AsgdRule rule(const Part& part, double grad_scale) const {
    const auto steps_done = static_cast<double>(part.step - 1);
    const double lr = previous_lr_ * part.lr_factor;
    const double eta = lr / std::pow(1 + options_.lambd * lr * steps_done, options_.alpha);
    return {.gradient = part.gradient(grad_scale),
            .decay = 1 - options_.lambd * eta,
            .lr = eta,
            .mu = 1 / std::max(1.0, steps_done - options_.t0)};
  }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    return kernels::update(rule(part, grad_scale), part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    Tensor master = part.master, ax = part.state[0];
    const kernels::AsgdRule with = rule(part, 1);
    part.add_weight_decay();
    master.mul_(with.decay).add_(part.grad, -with.lr);
    if (with.mu == 1) {
      ax.copy_(master);
    } else {
      ax.add_(master.sub(ax), with.mu);
    }
  }

  AsgdOptions options_;
  double previous_lr_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> asgd(const AsgdOptions& options) {
  settings::check_settings(options, "ASGD");
  return std::make_unique<Asgd>(options);
}

}  // namespace stretto::optim
