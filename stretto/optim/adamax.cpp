#include <cmath>

#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Adamax : public PartwiseOptimizer {
 public:
  explicit Adamax(const AdamaxOptions& options)
      : PartwiseOptimizer({options.lr, options.betas[0]}, options.weight_decay), options_(options) {}
  std::string name() const override { return "Adamax"; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_inf"}; }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    const auto [beta1, beta2] = std::pair(part.momentum.value_or(options_.betas[0]), options_.betas[1]);
    return kernels::update(
        kernels::AdamaxRule{.gradient = part.gradient(grad_scale),
                            .beta1 = beta1,
                            .beta2 = beta2,
                            .eps = options_.eps,
                            .lr = part.lr / (1 - std::pow(beta1, static_cast<double>(part.step)))},
        part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    const auto [beta1, beta2] = std::pair(part.momentum.value_or(options_.betas[0]), options_.betas[1]);
    Tensor master = part.master, exp_avg = part.state[0], exp_inf = part.state[1];
    part.add_weight_decay();
    exp_avg.lerp_(part.grad, 1 - beta1);
    at::maximum_out(exp_inf, exp_inf.mul_(beta2), part.grad.abs().add_(options_.eps));
    const double correction = 1 - std::pow(beta1, static_cast<double>(part.step));
    master.addcdiv_(exp_avg, exp_inf, -part.lr / correction);
  }

  AdamaxOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> adamax(const AdamaxOptions& options) {
  settings::check_settings(options, "Adamax");
  return std::make_unique<Adamax>(options);
}

}  // namespace stretto::optim
