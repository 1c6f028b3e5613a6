#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/nn/functional.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Where a gradient buffer is set, it is added to; the returned undefined tensor tells autograd that nothing is left.
bool has_buffer(const Tensor& parameter) { return parameter.is_leaf() && parameter.grad().defined(); }

bool computed_wider(const Tensor& x) {
  return x.scalar_type() == at::kBFloat16 && x.device().is_cpu() && !cpu_has_bf16();
}

Tensor widened(const Tensor& x) { return computed_wider(x) ? x.to(at::kFloat) : x; }

void add_product(Tensor sum, const Tensor& a, const Tensor& b) {
  const Tensor wide_a = widened(a), wide_b = widened(b);
  if (wide_a.scalar_type() == sum.scalar_type()) {
    sum.addmm_(wide_a, wide_b);
  } else {
    sum.add_(at::mm(wide_a, wide_b));
  }
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias) {
    context->save_for_backward({x, weight, bias});
    if (!computed_wider(x)) return at::linear(x, weight, bias);
    return at::linear(widened(x), widened(weight), bias.defined() ? widened(bias) : bias).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const Tensor grad = outputs[0].contiguous();
    variable_list result(3);
    if (context->needs_input_grad(0)) {
      result[0] = at::mm(widened(grad), widened(weight)).to(x.scalar_type());
    }
    if (context->needs_input_grad(1)) {
      if (has_buffer(weight)) {
        add_product(weight.grad(), grad.t(), x);
      } else {
        result[1] = at::mm(widened(grad).t(), widened(x)).to(weight.scalar_type());
      }
    }
    if (bias.defined() && context->needs_input_grad(2)) {
      const auto dtype = has_buffer(bias) ? bias.grad().scalar_type() : bias.scalar_type();
      const Tensor sum = at::sum(grad, {0}, /*keepdim=*/false, dtype);
      if (has_buffer(bias)) {
        bias.grad().add_(sum);
      } else {
        result[2] = sum;
      }
    }
    return result;
  }
};

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& ids, const Tensor& table) {
    context->save_for_backward({ids, table});
    return table.index_select(0, ids);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &ids = saved[0], &table = saved[1];
    if (!context->needs_input_grad(1)) return {Tensor(), Tensor()};
    if (has_buffer(table)) {
      Tensor buffer = table.grad();
      buffer.index_add_(0, ids, outputs[0].to(buffer.scalar_type()));
      return {Tensor(), Tensor()};
    }
    return {Tensor(), at::zeros_like(table).index_add_(0, ids, outputs[0])};
  }
};

}  // namespace

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;  // every processor with AMX has it, too
#else
  return false;
#endif
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.dim() != 2 || x.size(1) != weight.size(1)) {
    throw ShapeError("linear: input {} does not fit weight {}; [T, {}] is needed", describe(x),
                     describe(weight), weight.size(1));
  }
  return LinearFunction::apply(x, weight, bias);
}

Tensor embedding(const Tensor& ids, const Tensor& table) {
  if (ids.device().is_cpu() && ids.numel() > 0) {
    const auto [least, largest] = at::aminmax(ids);
    const int64_t low = least.item<int64_t>(), high = largest.item<int64_t>();
    if (low < 0 || high >= table.size(0)) {
      throw DataError(
          "embedding: id {} is outside the table of {} rows; the tokenizer and the model do not belong "
          "together",
          low < 0 ? low : high, table.size(0));
    }
  }
  return EmbeddingFunction::apply(ids, table);
}

}  // namespace stretto::nn
