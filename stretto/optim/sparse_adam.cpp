#include <cmath>

#include "stretto/kernels/adamw.h"
#include "stretto/optim/elementwise.h"
#include "stretto/optim/lazy_rows.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class SparseAdam : public ElementwiseOptimizer, public StepsParts, private RowRule {
 public:
  explicit SparseAdam(const SparseAdamOptions& options)
      : ElementwiseOptimizer({options.lr, options.betas[0]}), options_(options) {}
  std::string name() const override { return "SparseAdam"; }
  Placement placement() const override { return Placement::rows; }
  bool steps_rows() const override { return true; }
  bool keeps_idle_rows() const override { return true; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

  void step_range(const Range& range, const StepRates& rates, double grad_scale, int64_t step) override {
    if (range.row_width > 0) {
      const Tensor rows = has_gradient(rows_of(range)).nonzero().flatten();
      return step_rows_of(range, rows, rates, grad_scale, step);
    }
    kernels::adamw(tensors(range), range.state[0], range.state[1],
                   settings(rates.lr, rates.momentum, options_.eps, grad_scale, step));
  }

  RowRule& row_rule() override { return *this; }

  void step_rows(size_t index, std::span<const int64_t> rows, const StepRates& rates, double grad_scale,
                 int64_t step) override {
    if (rows.empty()) return;
    const Range& range = table(index);
    const Tensor touched = at::from_blob(const_cast<int64_t*>(rows.data()), {std::ssize(rows)}, at::kLong);
    const Tensor with_gradient = touched.masked_select(has_gradient(rows_of(range).index_select(0, touched)));
    step_rows_of(range, with_gradient, {rates.lr * range.lr_factor, rates.momentum}, grad_scale, step);
  }

  // Idle rows are not changed.
  void step_idle_rows(size_t, std::span<const kernels::IdleRow>, std::span<const PastStep>) override {}
  Tensor rows_with_state(size_t index) const override {
    const Range& range = table(index);
    return at::zeros({range.buffers.master.numel() / range.row_width}, at::kBool);
  }

  // torch's SparseAdam adds eps to the root of exp_avg_sq before the correction of its bias, Adam after it.
  void step_rows_of(const Range& range, const Tensor& rows, const StepRates& rates, double grad_scale,
                    int64_t step) const {
    const double correction = std::sqrt(1 - std::pow(options_.betas[1], static_cast<double>(step)));
    const Tensor index = rows.contiguous();
    kernels::adamw_rows(tensors(range), range.state[0], range.state[1], range.row_width,
                        {index.const_data_ptr<int64_t>(), static_cast<size_t>(index.numel())},
                        settings(rates.lr, rates.momentum, options_.eps / correction, grad_scale, step));
  }

  static Tensor rows_of(const Range& range) { return range.buffers.grad.view({-1, range.row_width}); }
  static Tensor has_gradient(const Tensor& rows) { return rows.ne(0).any(1); }

  static kernels::OptimizerRange tensors(const Range& range) {
    return {range.buffers.master, range.buffers.grad, range.buffers.compute};
  }
  kernels::AdamwStep settings(double lr, std::optional<double> beta1, double eps, double grad_scale,
                              int64_t step) const {
    return {lr,  beta1.value_or(options_.betas[0]), options_.betas[1], eps, /*weight_decay=*/0, grad_scale,
            step};
  }

  SparseAdamOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> sparse_adam(const SparseAdamOptions& options) {
  settings::check_settings(options, "SparseAdam");
  return std::make_unique<SparseAdam>(options);
}

}  // namespace stretto::optim
