#include "stretto/kernels/embedding.h"

#include <algorithm>
#include <optional>

#include <torch/custom_class.h>

#include "stretto/base/error.h"
#include "stretto/kernels/loop_types.h"
#include "stretto/nn/apply.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/parameter_gradient.h"
#include "stretto/nn/row_observer.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The row hooks of the tables of a lookup; some may be null.
struct RowHooks : torch::CustomClassHolder {
  std::vector<std::shared_ptr<RowHook>> hooks;

  RowObserver* observer(size_t table) const {
    return hooks[table] == nullptr ? nullptr : hooks[table]->observer;
  }
};

c10::intrusive_ptr<RowHooks> hooks_of(const AutogradContext& context) {
  return c10::static_intrusive_pointer_cast<RowHooks>(context.saved_data.at("hooks").toCapsule());
}

// sums[ids[t]] += grad[t]. On GPUs index_add_ adds in an order that differs between runs; index_put_ sorts.
void add_to_rows(const Tensor& sums, const Tensor& ids, const Tensor& grad) {
  if (sums.is_cuda()) {
    c10::List<std::optional<Tensor>> rows;
    rows.push_back(ids);
    sums.index_put_(rows, grad, /*accumulate=*/true);
  } else {
    sums.index_add_(0, ids, grad);
  }
}

// The sum of lookups in several tables: `parts` are ids and table of each lookup. `fast`: use stretto's
// kernels.
struct RowSumFunction : torch::autograd::Function<RowSumFunction> {
  static Tensor forward(AutogradContext* context, at::TensorList parts, bool fast,
                        const c10::intrusive_ptr<RowHooks>& hooks) {
    context->save_for_backward(parts.vec());
    context->saved_data["hooks"] = c10::IValue::make_capsule(hooks);
    context->saved_data["fast"] = fast;
    std::vector<kernels::Lookup> lookups;
    for (size_t i = 0; i < parts.size(); i += 2) lookups.push_back({parts[i], parts[i + 1]});
    return fast ? kernels::row_sum(lookups) : kernels::row_sum_reference(lookups);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    variable_list result(saved.size() + 2);
    const auto hooks = hooks_of(*context);
    const bool fast = context->saved_data["fast"].toBool();
    const Tensor grad = outputs[0].contiguous();
    for (size_t i = 0; i < saved.size(); i += 2) {
      if (!context->needs_input_grad(i + 1)) continue;
      const Tensor &ids = saved[i], &table = saved[i + 1];
      const auto sum_type = kernels::computed_type(grad.scalar_type());
      const ParameterGradient sum(table, sum_type, true);
      if (fast) {
        kernels::add_rows(grad, ids, sum.sum());
      } else {
        add_to_rows(sum.sum(), ids, grad.to(sum_type));
      }
      result[i + 1] = sum.result();
      if (RowObserver* observer = hooks->observer(i / 2)) observer->got_gradient(ids);
    }
    return result;
  }
};

void check_shapes(const std::vector<Lookup>& lookups) {
  const Lookup& first = lookups.at(0);
  for (const auto& [ids, table, hook] : lookups) {
    if (ids.dim() == 1 && table.dim() == 2 && ids.numel() == first.ids.numel() &&
        table.size(1) == first.table.size(1) && table.scalar_type() == first.table.scalar_type() &&
        c10::isIntegralType(ids.scalar_type(), /*includeBool=*/false)) {
      continue;
    }
    throw ShapeError("embedding: found ids {} and table {}; expected integers [T] and a table [V, H]{}",
                     describe(ids), describe(table),
                     lookups.size() == 1 ? "" : ", with the same T, H and dtype for all lookups of a sum");
  }
}

}  // namespace

void require_ids(const Tensor& ids, int64_t rows) {
  if (!ids.device().is_cpu() || ids.numel() == 0) return;
  const auto [least, largest] = at::aminmax(ids);
  const int64_t low = least.item<int64_t>(), high = largest.item<int64_t>();
  if (low >= 0 && high < rows) return;
  throw DataError(
      "embedding: id {} is out of range for a table of {} rows; the tokenizer does not belong to the model",
      low < 0 ? low : high, rows);
}

bool notifies_of_rows(const torch::autograd::Node& node, const RowHook& hook) {
  const auto* lookups = dynamic_cast<const torch::autograd::CppNode<RowSumFunction>*>(&node);
  return lookups != nullptr && std::ranges::any_of(hooks_of(lookups->ctx_)->hooks,
                                                   [&](const auto& held) { return held.get() == &hook; });
}

Tensor embedding_sum(const std::vector<Lookup>& lookups, const Context& context) {
  check_shapes(lookups);
  std::vector<Tensor> parts;
  const auto hooks = c10::make_intrusive<RowHooks>();
  bool fast = true;
  for (const auto& [given_ids, table, hook] : lookups) {
    const Tensor ids = given_ids.to(at::kLong).contiguous();
    require_ids(ids, table.size(0));
    if (hook != nullptr && hook->observer != nullptr) hook->observer->will_read(ids);
    hooks->hooks.push_back(hook);
    parts.push_back(ids);
    parts.push_back(table);
    fast = fast && context.fast(table) && table.is_contiguous();
  }
  return apply<RowSumFunction>(at::TensorList(parts), fast, hooks);
}

Tensor embedding(const Tensor& ids, const Tensor& table) { return embedding_sum({{ids, table}}); }

}  // namespace stretto::nn
