#include "stretto/kernels/adamw.h"

#include "stretto/optim/elementwise.h"
#include "stretto/optim/lazy_rows.h"
#include "stretto/optim/optimizers.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Adamw : public ElementwiseOptimizer, private RowRule {
 public:
  explicit Adamw(const AdamwOptions& options)
      : ElementwiseOptimizer({options.lr, options.betas[0]}), options_(options) {}
  std::string name() const override { return "AdamW"; }
  bool steps_rows() const override { return options_.eps > 0; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  void step_range(const Range& range, const StepRates& rates, double grad_scale, int64_t step) override {
    kernels::adamw(tensors(range), range.state[0], range.state[1],
                   settings(range, rates.lr, rates.momentum, grad_scale, step));
  }

  RowRule& row_rule() override { return *this; }

  void step_rows(size_t index, std::span<const int64_t> rows, const StepRates& rates, double grad_scale,
                 int64_t step) override {
    const Range& range = table(index);
    kernels::adamw_rows(tensors(range), range.state[0], range.state[1], range.row_width, rows,
                        settings(range, rates.lr * range.lr_factor, rates.momentum, grad_scale, step));
  }

  void step_idle_rows(size_t index, std::span<const kernels::IdleRow> rows,
                      std::span<const PastStep> steps) override {
    const Range& range = table(index);
    std::vector<kernels::AdamwStep> each;
    for (const auto& [rates, step] : steps)
      each.push_back(settings(range, rates.lr * range.lr_factor, rates.momentum, /*grad_scale=*/1, step));
    kernels::adamw_idle_rows(tensors(range), range.state[0], range.state[1], range.row_width, rows, each);
  }

  Tensor rows_with_state(size_t index) const override {
    const Range& range = table(index);
    const auto nonzero = [&](const Tensor& state) { return state.view({-1, range.row_width}).ne(0).any(1); };
    return nonzero(range.state[0]).logical_or_(nonzero(range.state[1]));
  }

  static kernels::OptimizerRange tensors(const Range& range) {
    return {range.buffers.master, range.buffers.grad, range.buffers.compute};
  }
  kernels::AdamwStep settings(const Range& range, double lr, std::optional<double> beta1, double grad_scale,
                              int64_t step) const {
    return {lr,
            beta1.value_or(options_.betas[0]),
            options_.betas[1],
            options_.eps,
            range.weight_decay ? options_.weight_decay : 0,
            grad_scale,
            step};
  }

  AdamwOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> adamw(const AdamwOptions& options) {
  settings::check_settings(options, "AdamW");
  return std::make_unique<Adamw>(options);
}

}  // namespace stretto::optim
