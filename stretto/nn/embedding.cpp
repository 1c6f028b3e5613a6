#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/parameter_gradient.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& ids, const Tensor& table) {
    context->save_for_backward({ids, table});
    return table.index_select(0, ids);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &ids = saved[0], &table = saved[1];
    if (!context->needs_input_grad(1)) return {Tensor(), Tensor()};
    if (has_gradient_buffer(table)) {
      Tensor buffer = table.grad();
      buffer.index_add_(0, ids, outputs[0].to(buffer.scalar_type()));
      return {Tensor(), Tensor()};
    }
    return {Tensor(), at::zeros_like(table).index_add_(0, ids, outputs[0])};
  }
};

}  // namespace

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
