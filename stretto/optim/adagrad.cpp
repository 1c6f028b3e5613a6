#include "stretto/kernels/update_rules.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Adagrad : public PartwiseOptimizer {
 public:
  explicit Adagrad(const AdagradOptions& options)
      : PartwiseOptimizer({options.lr}, options.weight_decay), options_(options) {}
  std::string name() const override { return "Adagrad"; }

 private:
  std::vector<std::string> state_names() const override { return {"sum"}; }

  void init_state(const Range& range) override {
    Tensor(range.state[0]).fill_(options_.initial_accumulator_value);
  }

  bool step_in_one_pass(const Part& part, double grad_scale) override {
    return kernels::update(
        kernels::AdagradRule{.gradient = part.gradient(grad_scale), .eps = options_.eps, .lr = lr_of(part)},
        part.master, part.grad, part.state);
  }

  void step_part(const Part& part) override {
    Tensor master = part.master, sum = part.state[0];
    part.add_weight_decay();
    sum.addcmul_(part.grad, part.grad);
    master.addcdiv_(part.grad, sum.sqrt().add_(options_.eps), -lr_of(part));
  }

  double lr_of(const Part& part) const {
    return part.lr / (1 + static_cast<double>(part.step - 1) * options_.lr_decay);
  }

  AdagradOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> adagrad(const AdagradOptions& options) {
  settings::check_settings(options, "Adagrad");
  return std::make_unique<Adagrad>(options);
}

}  // namespace stretto::optim
