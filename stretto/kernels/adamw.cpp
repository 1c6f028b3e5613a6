#include "stretto/kernels/adamw.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include <ATen/ops/_fused_adamw.h>

#include "stretto/base/error.h"
#include "stretto/kernels/cpu/adamw_loops.h"
#include "stretto/kernels/cpu/round_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"
#include "stretto/kernels/flush_denormals.h"

namespace stretto::kernels {
namespace {

template <class Real>
AdamwConstants<Real> constants(const AdamwStep& s) {
  const double correction1 = 1 - std::pow(s.beta1, static_cast<double>(s.step));
  const double correction2 = 1 - std::pow(s.beta2, static_cast<double>(s.step));
  return {static_cast<Real>(1 - s.lr * s.weight_decay),
          static_cast<Real>(s.beta1),
          static_cast<Real>(s.beta2),
          static_cast<Real>(s.eps),
          static_cast<Real>(s.grad_scale),
          static_cast<Real>(s.lr / correction1),
          static_cast<Real>(1 / std::sqrt(correction2))};
}

void adamw_composite(const OptimizerRange& range, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                     const AdamwStep& step) {
  const auto c = constants<double>(step);
  const Tensor &grad = range.grad, &m = exp_avg, &v = exp_avg_sq, &master = range.master;
  grad.mul_(c.grad_scale);
  m.mul_(c.beta1).add_(grad, 1 - c.beta1);
  v.mul_(c.beta2).addcmul_(grad, grad, 1 - c.beta2);
  master.mul_(c.lr_decay).addcdiv_(m, v.sqrt().mul_(c.inverse_root_correction2).add_(c.eps), -c.step_size);
  grad.zero_();
}

// The same by torch's kernel, in one pass over memory.
void adamw_cuda(const OptimizerRange& range, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                const AdamwStep& step) {
  const auto scalar = [&](double value) {
    return at::full({}, value, range.master.options().dtype(at::kFloat));
  };
  std::optional<Tensor> divisor;
  if (step.grad_scale != 1) divisor = scalar(1 / step.grad_scale);
  at::_fused_adamw_({range.master}, {range.grad}, {exp_avg}, {exp_avg_sq}, /*max_exp_avg_sqs=*/{},
                    {scalar(static_cast<double>(step.step))}, step.lr, step.beta1, step.beta2,
                    step.weight_decay, step.eps, /*amsgrad=*/false, /*maximize=*/false, divisor);
  Tensor(range.grad).zero_();
}

// A copy of fp32 weights in 16 bits, or none.
class Copy {
 public:
  explicit Copy(const Tensor& compute)
      : bf16_(is(compute, at::kBFloat16) ? memory_of<Bf16>(compute) : nullptr),
        fp16_(is(compute, at::kBFloat16) ? nullptr : memory_of<F16>(compute)) {}

  explicit operator bool() const { return bf16_ != nullptr || fp16_ != nullptr; }
  // Rounds `count` weights to those of the copy from `begin` on.
  void write(const float* weights, int64_t begin, int64_t count) const {
    if (bf16_ != nullptr) return round_loop(weights, bf16_ + begin, count);
    if (fp16_ != nullptr) round_loop(weights, fp16_ + begin, count);
  }

 private:
  static bool is(const Tensor& compute, at::ScalarType dtype) {
    return compute.defined() && compute.scalar_type() == dtype;
  }
  Bf16* bf16_;
  F16* fp16_;
};

// Processes blocks, so that the copy is written while the weights are still in the cache.
void adamw_float(const OptimizerRange& range, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                 const AdamwConstants<float>& c) {
  constexpr int64_t at_once = 512;  // five buffers of this size fit into L1
  float *p = memory_of<float>(range.master), *g = memory_of<float>(range.grad);
  float *m = memory_of<float>(exp_avg), *v = memory_of<float>(exp_avg_sq);
  const Copy copy(range.compute);
  const int64_t n = range.master.numel(), part = copy ? at_once : n;
  for (int64_t i = 0; i < n; i += part) {
    const int64_t count = std::min(part, n - i);
    adamw_loop(p + i, g + i, m + i, v + i, count, c);
    copy.write(p + i, i, count);
  }
}

// The memory of a table and its moments, row by row.
template <class R>
struct TableMemory {
  R *p, *g, *m, *v;
  Copy copy;
  int64_t width;

  TableMemory(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq, int64_t columns)
      : p(memory_of<R>(table.master)),
        g(memory_of<R>(table.grad)),
        m(memory_of<R>(exp_avg)),
        v(memory_of<R>(exp_avg_sq)),
        copy(table.compute),
        width(columns) {}

  void write_copy(int64_t row) const {
    if constexpr (std::is_same_v<R, float>) copy.write(p + row * width, row * width, width);
  }
};

template <class R>
void idle_rows(const TableMemory<R>& table, std::span<const IdleRow> rows, std::span<const AdamwStep> steps) {
  std::vector<AdamwConstants<R>> each;
  for (const AdamwStep& step : steps) each.push_back(constants<R>(step));
  std::vector<R> zeros(static_cast<size_t>(table.width));
  for (const IdleRow& idle : rows) {
    const int64_t at = idle.row * table.width;
    for (size_t i = idle.first; i < each.size(); ++i) {
      if (idle.moments) {
        adamw_loop(table.p + at, zeros.data(), table.m + at, table.v + at, table.width, each[i]);
      } else if (each[i].lr_decay != 1 || i == idle.first) {  // the first also flushes denormal weights
        decay_loop(table.p + at, table.width, each[i].lr_decay);
      }
    }
    table.write_copy(idle.row);
  }
}

template <class R>
void step_rows(const TableMemory<R>& table, std::span<const int64_t> rows, const AdamwStep& step) {
  const auto c = constants<R>(step);
  for (const int64_t row : rows) {
    const int64_t at = row * table.width;
    adamw_loop(table.p + at, table.g + at, table.m + at, table.v + at, table.width, c);
    table.write_copy(row);
  }
}

}  // namespace

void adamw_idle_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                     int64_t width, std::span<const IdleRow> rows, std::span<const AdamwStep> steps) {
  const FlushDenormals flush;
  if (table.master.scalar_type() == at::kDouble) {
    idle_rows(TableMemory<double>(table, exp_avg, exp_avg_sq, width), rows, steps);
  } else {
    idle_rows(TableMemory<float>(table, exp_avg, exp_avg_sq, width), rows, steps);
  }
}

void adamw_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq, int64_t width,
                std::span<const int64_t> rows, const AdamwStep& step) {
  const FlushDenormals flush;
  if (table.master.scalar_type() == at::kDouble) {
    step_rows(TableMemory<double>(table, exp_avg, exp_avg_sq, width), rows, step);
  } else {
    step_rows(TableMemory<float>(table, exp_avg, exp_avg_sq, width), rows, step);
  }
}

void adamw(const OptimizerRange& range, const Tensor& exp_avg, const Tensor& exp_avg_sq,
           const AdamwStep& step) {
  at::NoGradGuard no_grad;
  const FlushDenormals flush;
  const int64_t n = range.master.numel();
  const auto dtype = range.master.scalar_type();
  if (range.master.is_cuda() && n > 0) {
    adamw_cuda(range, exp_avg, exp_avg_sq, step);
  } else if (!range.master.device().is_cpu()) {
    adamw_composite(range, exp_avg, exp_avg_sq, step);
  } else if (dtype == at::kFloat) {
    adamw_float(range, exp_avg, exp_avg_sq, constants<float>(step));
    return;
  } else if (dtype == at::kDouble) {
    adamw_loop(range.master.data_ptr<double>(), range.grad.data_ptr<double>(), exp_avg.data_ptr<double>(),
               exp_avg_sq.data_ptr<double>(), n, constants<double>(step));
  } else {
    throw Error("adamw: master weights must be float or double, found {}", describe(range.master));
  }
  write_compute_copy(range);
}

}  // namespace stretto::kernels
