// An optimizer that stretto does not have: Lion (Chen et al. 2023), which steps by the sign of an average of
// gradients.
#include <stretto/optim/parts.h>
#include <stretto/stretto.h>

namespace {

namespace optim = stretto::optim;

struct LionOptions {
  double lr = 1e-4;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.99;

  // The settings of `optimizer:` in recipes, which are checked when a recipe is read.
  void fields(stretto::settings::Fields& field) {
    using stretto::settings::at_least;
    field("lr", lr, "the learning rate", at_least(0));
    field("weight_decay", weight_decay, "decoupled from the gradient", at_least(0));
    field("beta1", beta1, "weight of the average in a step", at_least(0).below(1));
    field("beta2", beta2, "decay of the average", at_least(0).below(1));
  }
  bool operator==(const LionOptions&) const = default;
};

class Lion : public optim::PartwiseOptimizer {
 public:
  explicit Lion(const LionOptions& options)
      : PartwiseOptimizer({options.lr}, options.weight_decay), options_(options) {}
  std::string name() const override { return "Lion"; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg"}; }

  // A range of the parameters, of whatever shape; `state` has a range for each of state_names().
  void step_part(const Part& part) override {
    stretto::Tensor master = part.master, average = part.state[0];
    part.apply_weight_decay(/*decoupled=*/true);
    master.sub_(at::lerp(part.grad, average, options_.beta1).sign_(), part.lr);
    average.lerp_(part.grad, 1 - options_.beta2);
  }

  LionOptions options_;
};

std::unique_ptr<optim::Optimizer> lion(const LionOptions& options) { return std::make_unique<Lion>(options); }

}  // namespace

void add_lion() { optim::register_optimizer("Lion", "steps by the sign of an average of gradients", lion); }
