#include <cmath>

#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Radam : public PartwiseOptimizer {
 public:
  explicit Radam(const RadamOptions& options)
      : PartwiseOptimizer({options.lr, options.betas[0]}, options.weight_decay), options_(options) {}
  std::string name() const override { return "RAdam"; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  // lr / bias correction of the mean, times the rectification of the variance; 0 if the variance is not yet
  // tractable.
  double step_size(const Part& part, double beta1) const {
    const auto step = static_cast<double>(part.step);
    const double beta2 = options_.betas[1], correction2 = 1 - std::pow(beta2, step);
    const double rho_inf = 2 / (1 - beta2) - 1;
    const double rho = rho_inf - 2 * step * std::pow(beta2, step) / correction2;
    if (rho <= 5) return 0;
    const double rectification =
        std::sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho));
    return part.lr / (1 - std::pow(beta1, step)) * std::sqrt(correction2) * rectification;
  }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    const double beta1 = part.momentum.value_or(options_.betas[0]), size = step_size(part, beta1);
    if (size == 0) return false;
    const bool decoupled = options_.decoupled_weight_decay;
    return kernels::update(kernels::AdamRule{.gradient = part.gradient(grad_scale, decoupled),
                                             .beta1 = beta1,
                                             .beta2 = options_.betas[1],
                                             .eps = options_.eps,
                                             .decay = decoupled ? 1 - part.lr * part.weight_decay : 1,
                                             .root_factor = 1,
                                             .of_gradient = 0,
                                             .of_mean = size},
                           part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    const auto [beta1, beta2] = std::pair(part.momentum.value_or(options_.betas[0]), options_.betas[1]);
    Tensor master = part.master, exp_avg = part.state[0], exp_avg_sq = part.state[1];
    part.apply_weight_decay(options_.decoupled_weight_decay);
    exp_avg.lerp_(part.grad, 1 - beta1);
    exp_avg_sq.mul_(beta2).addcmul_(part.grad, part.grad, 1 - beta2);
    const double size = step_size(part, beta1);
    if (size == 0) {
      master.add_(exp_avg, -part.lr / (1 - std::pow(beta1, static_cast<double>(part.step))));
    } else {
      master.addcdiv_(exp_avg, exp_avg_sq.sqrt().add_(options_.eps), -size);
    }
  }

  RadamOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> radam(const RadamOptions& options) {
  settings::check_settings(options, "RAdam");
  return std::make_unique<Radam>(options);
}

}  // namespace stretto::optim
