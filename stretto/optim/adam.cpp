#include <cmath>

#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Adam : public PartwiseOptimizer {
 public:
  explicit Adam(const AdamOptions& options)
      : PartwiseOptimizer({options.lr, options.betas[0]}, options.weight_decay), options_(options) {}
  std::string name() const override { return "Adam"; }

 private:
  std::vector<std::string> state_names() const override {
    std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
    if (options_.amsgrad) names.emplace_back("max_exp_avg_sq");
    return names;
  }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    if (options_.amsgrad) return false;
    const auto [beta1, beta2] = std::pair(part.momentum.value_or(options_.betas[0]), options_.betas[1]);
    const auto step = static_cast<double>(part.step);
    return kernels::update(kernels::AdamRule{.gradient = part.gradient(grad_scale),
                                             .beta1 = beta1,
                                             .beta2 = beta2,
                                             .eps = options_.eps,
                                             .decay = 1,
                                             .root_factor = 1 / std::sqrt(1 - std::pow(beta2, step)),
                                             .of_gradient = 0,
                                             .of_mean = part.lr / (1 - std::pow(beta1, step))},
                           part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    const auto [beta1, beta2] = std::pair(part.momentum.value_or(options_.betas[0]), options_.betas[1]);
    const auto step = static_cast<double>(part.step);
    Tensor master = part.master, exp_avg = part.state[0], exp_avg_sq = part.state[1], largest = exp_avg_sq;
    part.add_weight_decay();
    exp_avg.lerp_(part.grad, 1 - beta1);
    exp_avg_sq.mul_(beta2).addcmul_(part.grad, part.grad, 1 - beta2);
    if (options_.amsgrad) {
      largest = part.state[2];
      at::maximum_out(largest, largest, exp_avg_sq);
    }
    const double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
    master.addcdiv_(exp_avg, largest.sqrt().div_(std::sqrt(correction2)).add_(options_.eps),
                    -part.lr / correction1);
  }

  AdamOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> adam(const AdamOptions& options) {
  settings::check_settings(options, "Adam");
  return std::make_unique<Adam>(options);
}

}  // namespace stretto::optim
