#include <cmath>

#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Nadam : public PartwiseOptimizer {
 public:
  explicit Nadam(const NadamOptions& options)
      : PartwiseOptimizer({options.lr, options.betas[0]}, options.weight_decay), options_(options) {}
  std::string name() const override { return "NAdam"; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  void begin_step(const StepRates& rates, int64_t step) override {
    beta1_ = rates.momentum.value_or(options_.betas[0]);
    mu_ = mu(step);
    next_mu_ = mu(step + 1);
    mu_product_ *= mu_;
  }
  double mu(int64_t step) const {
    return beta1_ * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * options_.momentum_decay));
  }
  void add_scalars(nlohmann::json& scalars) const override { scalars["mu_product"] = mu_product_; }
  void read_scalars(const nlohmann::json& scalars) override { scalars.at("mu_product").get_to(mu_product_); }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    const double beta2 = options_.betas[1];
    const bool decoupled = options_.decoupled_weight_decay;
    return kernels::update(
        kernels::AdamRule{.gradient = part.gradient(grad_scale, decoupled),
                          .beta1 = beta1_,
                          .beta2 = beta2,
                          .eps = options_.eps,
                          .decay = decoupled ? 1 - part.lr * part.weight_decay : 1,
                          .root_factor = 1 / std::sqrt(1 - std::pow(beta2, static_cast<double>(part.step))),
                          .of_gradient = part.lr * (1 - mu_) / (1 - mu_product_),
                          .of_mean = part.lr * next_mu_ / (1 - mu_product_ * next_mu_)},
        part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    const double beta2 = options_.betas[1];
    Tensor master = part.master, exp_avg = part.state[0], exp_avg_sq = part.state[1];
    part.apply_weight_decay(options_.decoupled_weight_decay);
    exp_avg.lerp_(part.grad, 1 - beta1_);
    exp_avg_sq.mul_(beta2).addcmul_(part.grad, part.grad, 1 - beta2);
    const double correction2 = 1 - std::pow(beta2, static_cast<double>(part.step));
    const Tensor denominator = exp_avg_sq.div(correction2).sqrt_().add_(options_.eps);
    master.addcdiv_(part.grad, denominator, -part.lr * (1 - mu_) / (1 - mu_product_));
    master.addcdiv_(exp_avg, denominator, -part.lr * next_mu_ / (1 - mu_product_ * next_mu_));
  }

  NadamOptions options_;
  double beta1_ = 0, mu_ = 0, next_mu_ = 0;  // of the current step
  double mu_product_ = 1;
};

}  // namespace

std::unique_ptr<Optimizer> nadam(const NadamOptions& options) {
  settings::check_settings(options, "NAdam");
  return std::make_unique<Nadam>(options);
}

}  // namespace stretto::optim
