#include "stretto/optim/radam.h"

#include <cmath>

#include "stretto/declare/check_settings.h"
#include "stretto/optim/parts.h"

namespace stretto::optim {
namespace {

class Radam : public PartwiseOptimizer {
 public:
  explicit Radam(const RadamOptions& options)
      : PartwiseOptimizer({options.lr, options.betas[0]}, options.weight_decay), options_(options) {}
  std::string name() const override { return "RAdam"; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  void step_part(const Part& part) override {
    const auto [beta1, beta2] = std::pair(part.momentum.value_or(options_.betas[0]), options_.betas[1]);
    const auto step = static_cast<double>(part.step);
    Tensor master = part.master, exp_avg = part.state[0], exp_avg_sq = part.state[1];
    part.apply_weight_decay(options_.decoupled_weight_decay);
    exp_avg.lerp_(part.grad, 1 - beta1);
    exp_avg_sq.mul_(beta2).addcmul_(part.grad, part.grad, 1 - beta2);
    const double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
    const double rho_inf = 2 / (1 - beta2) - 1;
    const double rho = rho_inf - 2 * step * std::pow(beta2, step) / correction2;
    if (rho <= 5) {  // the variance of so few gradients says nothing
      master.add_(exp_avg, -part.lr / correction1);
      return;
    }
    const double rectification =
        std::sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho));
    master.addcdiv_(exp_avg, exp_avg_sq.sqrt().add_(options_.eps),
                    -part.lr / correction1 * std::sqrt(correction2) * rectification);
  }

  RadamOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> radam(const RadamOptions& options) {
  declare::check_settings(options, "RAdam");
  return std::make_unique<Radam>(options);
}

}  // namespace stretto::optim
