#include "stretto/kernels/cross_entropy.h"

#include <algorithm>
#include <array>

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/kernels/loop_types.h"
#include "stretto/kernels/matmul/matmul.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/matmul.h"
#include "stretto/nn/parameter_gradient.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {
namespace {

using kernels::MatmulRole;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t ignored_label = -100;

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels) {
    const auto result = kernels::cross_entropy(logits, labels, ignored_label);
    context->save_for_backward({logits, labels, result.normaliser});
    return result.sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor grad = at::empty_like(saved[0]);
    kernels::cross_entropy_backward(outputs[0].item<double>(), saved[0], saved[1], ignored_label, saved[2],
                                    grad);
    return {grad, Tensor()};
  }
};

// The maximum size of the logits in memory, in bytes. The weight's gradient is read and written once per
// chunk of rows: with a quarter of this size, its matmuls take 1.7 times as long (50,257 classes, bf16).
constexpr int64_t bytes_at_once = int64_t{128} << 20;

// Returns the sum of the cross entropies of logits [n, C], a scalar in fp64 on their device: a GPU need not
// be waited for. If `differentiated`, the logits are replaced by its gradient.
Tensor consume(const Tensor& logits, const Tensor& labels, bool differentiated, bool fast) {
  if (fast) {
    if (!differentiated) return kernels::cross_entropy(logits, labels, ignored_label).sum.to(at::kDouble);
    return at::scalar_tensor(kernels::cross_entropy_with_gradient(logits, labels, ignored_label),
                             at::kDouble);
  }
  const Tensor logs = at::log_softmax(logits.to(kernels::computed_type(logits.scalar_type())), 1);
  const Tensor columns = labels.unsqueeze(1);
  const Tensor sum = logs.gather(1, columns).sum().to(at::kDouble).neg_();
  if (differentiated)
    logits.copy_(logs.exp().scatter_add(1, columns, at::full_like(columns, -1, logs.options())));
  return sum;
}

// consume() by the kernels, where the logits are those of this rank's classes.
Tensor consume_own(const Tensor& logits, const Tensor& labels, bool differentiated,
                   const ClassesOfRank& classes) {
  const Tensor columns = labels - classes.first;
  const Tensor here = columns.ge(0).logical_and(columns.lt(logits.size(1)));
  const Tensor column = columns.clamp(0, logits.size(1) - 1);  // of a label elsewhere: any
  const Tensor at_column =
      logits.gather(1, column.unsqueeze(1)).squeeze(1).to(kernels::computed_type(logits.scalar_type()));
  const Tensor own = kernels::cross_entropy(logits, column, ignored_label).normaliser;
  const Tensor largest = own.select(1, 0).clone();
  classes.ranks.all_reduce(largest, ReduceOp::max).wait();
  const Tensor sums = at::stack(
      {(own.select(1, 0) - largest + own.select(1, 1)).exp(), at::where(here, at_column - largest, 0)});
  classes.ranks.all_reduce(sums).wait();
  const Tensor log_sum = sums[0].log();
  if (differentiated) {
    kernels::cross_entropy_backward(1, logits, column, ignored_label, at::stack({largest, log_sum}, 1),
                                    logits);
    const Tensor gradient = (at_column - largest - log_sum).exp() - here.to(at_column.scalar_type());
    logits.scatter_(1, column.unsqueeze(1), gradient.to(logits.scalar_type()).unsqueeze(1));
  }
  return (log_sum - sums[1]).sum(at::kDouble);
}

// The same, where the logits are those of this rank's classes. Labels are numbers of all classes. Collective.
Tensor consume(const Tensor& logits, const Tensor& labels, bool differentiated, const ClassesOfRank& classes,
               bool fast) {
  if (fast) return consume_own(logits, labels, differentiated, classes);
  const Tensor values = logits.to(kernels::computed_type(logits.scalar_type()));
  const Tensor largest = values.amax(1, /*keepdim=*/true);
  classes.ranks.all_reduce(largest, ReduceOp::max).wait();
  values.sub_(largest);
  const Tensor columns = (labels - classes.first).unsqueeze(1);
  const Tensor here = columns.ge(0).logical_and(columns.lt(values.size(1)));
  const Tensor column = columns.clamp(0, values.size(1) - 1);
  const Tensor of_labels = at::where(here, values.gather(1, column), 0).squeeze(1);
  values.exp_();
  const Tensor sums = at::stack({values.sum(1), of_labels});
  classes.ranks.all_reduce(sums).wait();
  if (differentiated) {
    values.div_(sums[0].unsqueeze(1));
    values.scatter_add_(1, column, -here.to(values.scalar_type()));
    if (!values.is_same(logits)) logits.copy_(values);
  }
  return (sums[0].log() - sums[1]).sum(at::kDouble);
}

// The gradients, multiplied by that of the sum, without waiting for the GPU to know it.
void scale_on_gpu(const Tensor& factor, const Tensor& weight, const Tensor& grad_x, const Tensor& grad_weight,
                  variable_list& result) {
  if (grad_x.defined()) result[0] = (grad_x * factor).to(weight.scalar_type());
  if (!grad_weight.defined()) return;
  if (has_gradient_buffer(weight)) {
    Tensor(weight.grad()).addcmul_(grad_weight, factor.to(grad_weight.scalar_type()));
  } else {
    result[1] = (grad_weight * factor).to(weight.scalar_type());
  }
}

// Gradients are computed together with the logits, which are not kept, and are multiplied by the gradient of
// the sum in backward.
struct LinearCrossEntropyFunction : torch::autograd::Function<LinearCrossEntropyFunction> {
  // Labels [N] without ignored ones; `trains`: whether x and weight need gradients. `divided`: null if the
  // weight has all classes; else the gradient of x is that of this rank's classes.
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& labels,
                        std::array<bool, 2> trains, bool fast, const ClassesOfRank* divided) {
    const Tensor wide_x = operand(x), wide_weight = operand(weight);
    const int64_t rows = x.size(0), classes = wide_weight.size(0);
    // The ranks have equal numbers of chunks, also if their numbers of classes differ.
    const int64_t most_classes =
        divided == nullptr ? classes : (divided->all + divided->ranks.size() - 1) / divided->ranks.size();
    const int64_t bytes = rows * most_classes * static_cast<int64_t>(wide_x.element_size());
    const int64_t chunks = std::max<int64_t>(1, (bytes + bytes_at_once - 1) / bytes_at_once);
    const int64_t rows_at_once = (rows + chunks - 1) / chunks;
    const Tensor memory = at::empty({rows_at_once, classes}, wide_x.options());
    const auto [trains_x, trains_weight] = trains;
    const auto type = kernels::computed_type(x.scalar_type());
    Tensor grad_x, grad_weight;
    if (trains_x) grad_x = at::empty_like(wide_x);
    if (trains_weight) grad_weight = at::empty(weight.sizes(), x.options().dtype(type));
    const Tensor sum = at::zeros({}, x.options().dtype(at::kDouble));
    for (int64_t begin = 0; begin < rows; begin += rows_at_once) {
      const int64_t end = std::min(rows, begin + rows_at_once);
      const Tensor some = wide_x.slice(0, begin, end), logits = memory.slice(0, 0, end - begin);
      multiply(MatmulRole::forward, logits, some, wide_weight.t());
      const Tensor wanted = labels.slice(0, begin, end);
      Tensor(sum).add_(divided == nullptr
                           ? consume(logits, wanted, trains_x || trains_weight, fast)
                           : consume(logits, wanted, trains_x || trains_weight, *divided, fast));
      if (trains_x) multiply(MatmulRole::input_gradient, grad_x.slice(0, begin, end), logits, wide_weight);
      if (trains_weight)
        multiply(MatmulRole::weight_gradient, grad_weight, logits.t(), some, /*accumulate=*/begin > 0);
    }
    if (rows == 0 && trains_weight) grad_weight.zero_();
    context->save_for_backward({weight, grad_x, grad_weight});
    return sum.to(type);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &weight = saved[0], &grad_x = saved[1], &grad_weight = saved[2];
    variable_list result(6);
    if (weight.is_cuda()) {
      scale_on_gpu(outputs[0], weight, grad_x, grad_weight, result);
      return result;
    }
    const double factor = outputs[0].item<double>();
    if (grad_x.defined()) result[0] = (factor == 1 ? grad_x : grad_x * factor).to(weight.scalar_type());
    if (!grad_weight.defined()) return result;
    if (has_gradient_buffer(weight)) {
      Tensor(weight.grad()).add_(grad_weight, factor);
    } else {
      result[1] = (grad_weight * factor).to(weight.scalar_type());
    }
    return result;
  }
};

// Returns whether each label counts. Throws unless there is one label per row, in [0, classes) or ignored.
Tensor check_labels(const char* function, const Tensor& rows, const Tensor& labels, int64_t classes) {
  if (rows.dim() != 2 || labels.dim() != 1 || rows.size(0) != labels.size(0) ||
      labels.scalar_type() != at::kLong) {
    throw ShapeError("{}: rows {} and labels {} do not fit; [N, C] and [N] int64 are needed", function,
                     describe(rows), describe(labels));
  }
  Tensor counts = labels.ne(ignored_label);
  if (!labels.device().is_cpu()) return counts;
  const Tensor wrong = labels.lt(0).logical_or(labels.ge(classes)).logical_and(counts);
  if (!wrong.any().item<bool>()) return counts;
  throw DataError("{}: label {} is not one of {} classes (0 to {}; -100 leaves a row out)", function,
                  labels.masked_select(wrong)[0].item<int64_t>(), classes, classes - 1);
}

// `divided`: null if the weight has all classes.
Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                          const ClassesOfRank* divided, const Context& context) {
  const Tensor counts =
      check_labels("linear_cross_entropy", x, labels, divided == nullptr ? weight.size(0) : divided->all);
  const Tensor used = counts.nonzero().squeeze(1);
  const bool all = used.numel() == labels.numel();
  Tensor rows = all ? x.contiguous() : x.index_select(0, used);
  if (divided != nullptr) rows = to_parts(rows, divided->ranks);
  const bool graph = at::GradMode::is_enabled();
  const Tensor sum = LinearCrossEntropyFunction::apply(
      rows, weight, all ? labels.contiguous() : labels.index_select(0, used),
      std::array{graph && rows.requires_grad(), graph && weight.requires_grad()}, context.fast(rows),
      divided);
  return {sum, static_cast<double>(used.numel())};
}

}  // namespace

Loss cross_entropy(const Tensor& logits, const Tensor& labels, const Context& context) {
  const Tensor counts = check_labels("cross_entropy", logits, labels, logits.dim() == 2 ? logits.size(1) : 0);
  const Tensor sum = context.fast(logits)
                         ? CrossEntropyFunction::apply(logits.contiguous(), labels.contiguous())
                         : kernels::cross_entropy_reference(logits, labels, ignored_label);
  return {sum, static_cast<double>(counts.sum().item<int64_t>())};
}

Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                          const Context& context) {
  return linear_cross_entropy(x, weight, labels, nullptr, context);
}

Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                          const ClassesOfRank& classes, const Context& context) {
  return linear_cross_entropy(x, weight, labels, &classes, context);
}

}  // namespace stretto::nn
