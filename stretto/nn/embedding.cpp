#include "stretto/kernels/embedding.h"

#include <mutex>
#include <unordered_map>

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/kernels/tensor_loops.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/parameter_gradient.h"
#include "stretto/nn/row_observer.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Observers {
  std::mutex mutex;
  std::unordered_map<const c10::TensorImpl*, RowObserver*> of_table;
};
// Never destroyed: modules of static life may outlive everything else.
Observers& observers() {
  static auto* all = new Observers;
  return *all;
}

// The sum of lookups in several tables: `parts` are ids and table of each. `fast`: by kernels of our own.
struct RowSumFunction : torch::autograd::Function<RowSumFunction> {
  static Tensor forward(AutogradContext* context, at::TensorList parts, bool fast) {
    context->save_for_backward(parts.vec());
    context->saved_data["fast"] = fast;
    std::vector<kernels::Lookup> lookups;
    for (size_t i = 0; i < parts.size(); i += 2) lookups.push_back({parts[i], parts[i + 1]});
    return fast ? kernels::row_sum(lookups) : kernels::row_sum_reference(lookups);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    variable_list result(saved.size() + 1);
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
        Tensor(sum.sum()).index_add_(0, ids, grad.to(sum_type));
      }
      result[i + 1] = sum.result();
      if (RowObserver* observer = row_observer(table)) observer->got_gradient(ids);
    }
    return result;
  }
};

void check_shapes(const std::vector<Lookup>& lookups) {
  const Lookup& first = lookups.at(0);
  for (const auto& [ids, table] : lookups) {
    if (ids.dim() == 1 && table.dim() == 2 && ids.numel() == first.ids.numel() &&
        table.size(1) == first.table.size(1) && table.scalar_type() == first.table.scalar_type() &&
        c10::isIntegralType(ids.scalar_type(), /*includeBool=*/false)) {
      continue;
    }
    throw ShapeError("embedding: ids {} and table {} do not fit; [T] whole numbers and [V, H] are needed{}",
                     describe(ids), describe(table),
                     lookups.size() == 1 ? "" : ", alike in T, H and type over all that are summed");
  }
}

void check_ids(const Tensor& ids, const Tensor& table) {
  if (!ids.device().is_cpu() || ids.numel() == 0) return;
  const auto [least, largest] = at::aminmax(ids);
  const int64_t low = least.item<int64_t>(), high = largest.item<int64_t>();
  if (low >= 0 && high < table.size(0)) return;
  throw DataError(
      "embedding: id {} is outside the table of {} rows; the tokenizer and the model do not belong together",
      low < 0 ? low : high, table.size(0));
}

}  // namespace

void observe_rows(const Tensor& table, RowObserver& observer) {
  const std::lock_guard lock(observers().mutex);
  observers().of_table[table.unsafeGetTensorImpl()] = &observer;
}

void stop_observing_rows(const Tensor& table, const RowObserver& observer) {
  const std::lock_guard lock(observers().mutex);
  const auto found = observers().of_table.find(table.unsafeGetTensorImpl());
  if (found != observers().of_table.end() && found->second == &observer) observers().of_table.erase(found);
}

RowObserver* row_observer(const Tensor& table) {
  const std::lock_guard lock(observers().mutex);
  const auto found = observers().of_table.find(table.unsafeGetTensorImpl());
  return found == observers().of_table.end() ? nullptr : found->second;
}

bool uses_rows(const torch::autograd::Node& node) {
  return dynamic_cast<const torch::autograd::CppNode<RowSumFunction>*>(&node) != nullptr;
}

Tensor embedding_sum(const std::vector<Lookup>& lookups, const Context& context) {
  check_shapes(lookups);
  std::vector<Tensor> parts;
  bool fast = true;
  for (const auto& [given_ids, table] : lookups) {
    const Tensor ids = given_ids.to(at::kLong).contiguous();
    check_ids(ids, table);
    if (RowObserver* observer = row_observer(table)) observer->will_read(ids);
    parts.push_back(ids);
    parts.push_back(table);
    fast = fast && context.fast(table) && table.is_contiguous();
  }
  return RowSumFunction::apply(at::TensorList(parts), fast);
}

Tensor embedding(const Tensor& ids, const Tensor& table) { return embedding_sum({{ids, table}}); }

}  // namespace stretto::nn
