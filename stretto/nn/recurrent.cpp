#include "stretto/nn/recurrent.h"

#include <algorithm>
#include <numeric>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "stretto/base/error.h"
#include "stretto/nn/functional.h"

namespace stretto::nn {

StepOrder::StepOrder(const Tensor& cu_seqlens) : count(cu_seqlens.numel() - 1) {
  const Tensor host = cu_seqlens.to(at::kCPU).contiguous();
  const int64_t* const bound = host.const_data_ptr<int64_t>();
  const auto length = [&](int64_t b) { return bound[b + 1] - bound[b]; };
  std::vector<int64_t> order, row_order, sizes;
  for (int64_t b = 0; b < count; ++b)
    if (length(b) > 0) order.push_back(b);
  std::ranges::stable_sort(order, std::ranges::greater(), length);
  auto active = std::ssize(order);
  for (int64_t step = 0; !order.empty() && step < length(order.front()); ++step) {
    while (length(order[static_cast<size_t>(active - 1)]) <= step) --active;
    for (int64_t i = 0; i < active; ++i) row_order.push_back(bound[order[static_cast<size_t>(i)]] + step);
    sizes.push_back(active);
  }
  rows = at::tensor(row_order, at::kLong).to(cu_seqlens.device());
  batch_sizes = at::tensor(sizes, at::kLong);
  sequences = at::tensor(order, at::kLong).to(cu_seqlens.device());
}

Recurrent::Recurrent(const RecurrentOptions& options) : options_(options) {
  const int64_t gates = (options.cell == RecurrentOptions::Cell::lstm ? 4 : 3) * options.hidden;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    auto& tensors = parameters_of_layer_.emplace_back();
    for (int64_t direction = 0; direction < directions(); ++direction) {
      const std::string end = "_l" + std::to_string(layer) + (direction == 0 ? "" : "_reverse");
      const int64_t input = layer == 0 ? options.input : width();
      tensors.push_back(register_parameter("weight_ih" + end, at::empty({gates, input})));
      tensors.push_back(register_parameter("weight_hh" + end, at::empty({gates, options.hidden})));
      tensors.push_back(register_parameter("bias_ih" + end, at::empty({gates})));
      tensors.push_back(register_parameter("bias_hh" + end, at::empty({gates})));
    }
  }
}

// Computes bf16 and fp16 in fp32, also under autocast: torch has no faster 16-bit cells on CPU, and states of
// long sequences would lose precision.
Recurrent::States Recurrent::run(int64_t layer, const Tensor& steps, const StepOrder& order) const {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType type = steps.scalar_type();
  const auto wide = [&](const Tensor& x) { return x.element_size() == 2 ? x.to(at::kFloat) : x; };
  std::vector<Tensor> weights;
  for (const Tensor& parameter : parameters_of_layer_[static_cast<size_t>(layer)])
    weights.push_back(wide(parameter));
  const Tensor x = wide(steps);
  const Tensor zeros = at::zeros({directions(), order.sequences.numel(), options_.hidden}, x.options());
  const bool trains = at::GradMode::is_enabled();
  Tensor rows, last;
  if (options_.cell == RecurrentOptions::Cell::lstm) {
    std::tie(rows, last, std::ignore) =
        at::lstm(x, order.batch_sizes, {zeros, zeros}, weights, true, 1, 0.0, trains, options_.bidirectional);
  } else {
    std::tie(rows, last) =
        at::gru(x, order.batch_sizes, zeros, weights, true, 1, 0.0, trains, options_.bidirectional);
  }
  return {rows.to(type), last.to(type)};
}

Tensor Recurrent::forward(const Tensor& x, const PackedLayout& layout, const Context& context) const {
  if (x.dim() != 2 || x.size(0) != layout.tokens || x.size(1) != options_.input)
    throw ShapeError("recurrent layer: x {} is not [{}, {}]", describe(x), layout.tokens, options_.input);
  const StepOrder order(layout.cu_seqlens);
  Tensor rows = x;
  for (int64_t layer = 0; layer < options_.layers; ++layer) {
    if (layer > 0) {
      rows = dropout(rows, options_.dropout, options_.first_site + static_cast<uint64_t>(layer) - 1, layout,
                     context);
    }
    const Tensor steps = run(layer, rows.index_select(0, order.rows), order).rows;
    rows = at::index_copy(at::zeros({layout.tokens, width()}, steps.options()), 0, order.rows, steps);
  }
  return rows;
}

Tensor Recurrent::last_states(const Tensor& x, const Tensor& cu_seqlens) const {
  if (options_.layers != 1) throw ShapeError("recurrent layer: last_states of {} layers", options_.layers);
  const StepOrder order(cu_seqlens);
  const auto all = at::zeros({order.count, width()}, x.options());
  if (order.sequences.numel() == 0) return all;
  const Tensor last = run(0, x.index_select(0, order.rows), order).last;  // [directions, sequences, hidden]
  const Tensor by_sequence = last.transpose(0, 1).reshape({order.sequences.numel(), width()});
  return at::index_copy(all, 0, order.sequences, by_sequence);
}

}  // namespace stretto::nn
