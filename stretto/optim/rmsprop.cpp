#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Rmsprop : public PartwiseOptimizer {
 public:
  explicit Rmsprop(const RmspropOptions& options)
      : PartwiseOptimizer({options.lr, options.momentum > 0 ? std::optional(options.momentum) : std::nullopt},
                          options.weight_decay),
        options_(options) {}
  std::string name() const override { return "RMSprop"; }

 private:
  std::vector<std::string> state_names() const override {
    std::vector<std::string> names = {"square_avg"};
    if (options_.centered) names.emplace_back("grad_avg");
    if (options_.momentum > 0) names.emplace_back("momentum_buffer");
    return names;
  }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    if (options_.centered) return false;
    return kernels::update(kernels::RmspropRule{.gradient = part.gradient(grad_scale),
                                                .alpha = options_.alpha,
                                                .eps = options_.eps,
                                                .momentum = part.momentum.value_or(options_.momentum),
                                                .lr = part.lr},
                           part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    Tensor master = part.master, square_avg = part.state[0];
    part.add_weight_decay();
    square_avg.mul_(options_.alpha).addcmul_(part.grad, part.grad, 1 - options_.alpha);
    Tensor average;
    if (options_.centered) {
      Tensor grad_avg = part.state[1];
      grad_avg.lerp_(part.grad, 1 - options_.alpha);
      average = square_avg.addcmul(grad_avg, grad_avg, -1).sqrt_().add_(options_.eps);
    } else {
      average = square_avg.sqrt().add_(options_.eps);
    }
    if (options_.momentum > 0) {
      Tensor buffer = part.state.back();
      buffer.mul_(part.momentum.value_or(options_.momentum)).addcdiv_(part.grad, average);
      master.add_(buffer, -part.lr);
    } else {
      master.addcdiv_(part.grad, average, -part.lr);
    }
  }

  RmspropOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> rmsprop(const RmspropOptions& options) {
  settings::check_settings(options, "RMSprop");
  return std::make_unique<Rmsprop>(options);
}

}  // namespace stretto::optim
