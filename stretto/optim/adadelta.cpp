#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Adadelta : public PartwiseOptimizer {
 public:
  explicit Adadelta(const AdadeltaOptions& options)
      : PartwiseOptimizer({options.lr}, options.weight_decay), options_(options) {}
  std::string name() const override { return "Adadelta"; }

 private:
  std::vector<std::string> state_names() const override { return {"square_avg", "acc_delta"}; }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    return kernels::update(
        kernels::AdadeltaRule{
            .gradient = part.gradient(grad_scale), .rho = options_.rho, .eps = options_.eps, .lr = part.lr},
        part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    Tensor master = part.master, square_avg = part.state[0], acc_delta = part.state[1];
    part.add_weight_decay();
    square_avg.mul_(options_.rho).addcmul_(part.grad, part.grad, 1 - options_.rho);
    const Tensor std = square_avg.add(options_.eps).sqrt_();
    const Tensor delta = acc_delta.add(options_.eps).sqrt_().div_(std).mul_(part.grad);
    acc_delta.mul_(options_.rho).addcmul_(delta, delta, 1 - options_.rho);
    master.add_(delta, -part.lr);
  }

  AdadeltaOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> adadelta(const AdadeltaOptions& options) {
  settings::check_settings(options, "Adadelta");
  return std::make_unique<Adadelta>(options);
}

}  // namespace stretto::optim
