#include "stretto/parallel/parameters.h"

#include <unordered_set>

#include "stretto/base/error.h"
#include "stretto/nn/block_observer.h"
#include "stretto/nn/layers.h"

namespace stretto {
namespace {

void check_trainable(const std::string& name, const Tensor& tensor, at::Device device) {
  if (!tensor.is_floating_point() || tensor.layout() != at::kStrided) {
    throw ConfigError(
        "parameter {} is {}; only dense real floating-point parameters can be trained: freeze it (requires_grad = false) or make it a buffer",
        name, describe(tensor));
  }
  if (tensor.device() != device) {
    throw ConfigError("parameter {} is on {}, others are on {}; a model must lie on one device", name,
                      tensor.device().str(), device.str());
  }
}

// Walks the tree by itself, as named_modules() works only on modules that a shared_ptr owns.
class Collector {
 public:
  ModuleTensors result;

  // `prefix`: the module's path and a dot, or "" for the root. `unit`: the path of the innermost block around it.
  void visit(const torch::nn::Module& module, const std::string& prefix, std::string unit) {
    if (dynamic_cast<const nn::Block*>(&module) != nullptr)
      unit = prefix.substr(0, prefix.size() - !prefix.empty());
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      add(module, prefix, unit, item.key(), item.value());
    for (const auto& item : module.named_buffers(/*recurse=*/false)) {
      if (item.value().defined()) result.constant.emplace_back(prefix + item.key(), item.value());
    }
    for (const auto& child : module.named_children()) visit(*child.value(), prefix + child.key() + ".", unit);
  }

 private:
  void add(const torch::nn::Module& owner, const std::string& prefix, const std::string& unit,
           const std::string& name, const Tensor& tensor) {
    if (!tensor.defined()) return;
    if (!seen_.insert(tensor.unsafeGetTensorImpl()).second) {
      for (NamedParameter& known : result.trained) {
        if (known.tensor.is_same(tensor)) known.sparse = false;  // tied: not only looked up
      }
      return;
    }
    const std::string full_name = prefix + name;
    if (!tensor.requires_grad()) {
      result.constant.emplace_back(full_name, tensor);
      return;
    }
    check_trainable(full_name, tensor,
                    result.trained.empty() ? tensor.device() : result.trained[0].tensor.device());
    const auto* table = dynamic_cast<const nn::Embedding*>(&owner);
    result.trained.push_back({.name = full_name,
                              .unit = unit,
                              .tensor = tensor,
                              .decay = nn::has_weight_decay(owner, name),
                              .sparse = table != nullptr && table->sparse && tensor.is_same(table->weight) &&
                                        tensor.device().is_cpu(),
                              .row_hook = table == nullptr ? nullptr : table->hook});
  }

  std::unordered_set<const void*> seen_;
};

}  // namespace

ModuleTensors collect_tensors(const torch::nn::Module& module) {
  Collector collector;
  collector.visit(module, "", "");
  return std::move(collector.result);
}

}  // namespace stretto
