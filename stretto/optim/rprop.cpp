#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Rprop : public PartwiseOptimizer {
 public:
  explicit Rprop(const RpropOptions& options)
      : PartwiseOptimizer({options.lr}, /*weight_decay=*/0), options_(options) {}
  std::string name() const override { return "Rprop"; }

 private:
  std::vector<std::string> state_names() const override { return {"prev", "step_size"}; }

  void init_state(const Range& range) override {
    Tensor(range.state[1]).fill_(options_.lr * range.lr_factor);
  }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    return kernels::update(kernels::RpropRule{.gradient = part.gradient(grad_scale),
                                              .less = options_.etas[0],
                                              .more = options_.etas[1],
                                              .least = options_.step_sizes[0],
                                              .most = options_.step_sizes[1]},
                           part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    Tensor master = part.master, prev = part.state[0], step_size = part.state[1];
    const Tensor agreement = part.grad.mul(prev);
    const Tensor factor = at::ones_like(agreement)
                              .masked_fill_(agreement.gt(0), options_.etas[1])
                              .masked_fill_(agreement.lt(0), options_.etas[0]);
    step_size.mul_(factor).clamp_(options_.step_sizes[0], options_.step_sizes[1]);
    Tensor(part.grad).masked_fill_(agreement.lt(0), 0);
    master.addcmul_(part.grad.sign(), step_size, -1);
    prev.copy_(part.grad);
  }

  RpropOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> rprop(const RpropOptions& options) {
  settings::check_settings(options, "Rprop");
  return std::make_unique<Rprop>(options);
}

}  // namespace stretto::optim
