#include "stretto/kernels/sgd.h"

#include "stretto/optim/elementwise.h"
#include "stretto/optim/optimizers.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Sgd : public ElementwiseOptimizer {
 public:
  explicit Sgd(const SgdOptions& options)
      : ElementwiseOptimizer(
            {options.lr, options.momentum > 0 ? std::optional(options.momentum) : std::nullopt}),
        options_(options) {}
  std::string name() const override { return "SGD"; }

 private:
  std::vector<std::string> state_names() const override {
    return options_.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
  }

  void step_range(const Range& range, const StepRates& rates, double grad_scale, int64_t step) override {
    kernels::sgd(
        {range.buffers.master, range.buffers.grad, range.buffers.compute},
        range.state.empty() ? Tensor() : range.state[0],
        {rates.lr, range.state.empty() ? 0 : rates.momentum.value_or(options_.momentum), options_.dampening,
         range.weight_decay ? options_.weight_decay : 0, options_.nesterov, grad_scale, step});
  }

  SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(const SgdOptions& options) {
  settings::check_settings(options, "SGD");
  return std::make_unique<Sgd>(options);
}

}  // namespace stretto::optim
