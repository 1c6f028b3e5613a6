#include "stretto/parallel/parameters.h"

#include <cmath>
#include <unordered_set>

#include <fnmatch.h>

#include <torch/nn/modules/embedding.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/nn/block_observer.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::parallel {
namespace {

void check_trainable(const std::string& name, const Tensor& tensor, at::Device device) {
  if (!tensor.is_floating_point() || tensor.layout() != at::kStrided) {
    throw ConfigError(
        "parameter {} is {}; only dense real floating-point parameters can be trained: freeze it (requires_grad = false) or make it a buffer",
        name, stretto::describe(tensor));
  }
  if (tensor.device() != device) {
    throw ConfigError(
        "parameter {} is on {}, others are on {}; all parameters of a model must be on one device", name,
        tensor.device().str(), device.str());
  }
}

bool is_table(const torch::nn::Module& module) {
  return dynamic_cast<const nn::Embedding*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::EmbeddingImpl*>(&module) != nullptr;
}

// named_modules() is not used because it requires that a shared_ptr owns the module.
class Collector {
 public:
  explicit Collector(int64_t min_unit_elements) : min_unit_elements_(min_unit_elements) {}

  ModuleTensors result;

  // `prefix`: the module's path and a dot, or "" for the root. `unit`: the path of the innermost block
  // around it that is large enough. `in_block`: whether any block is around it.
  void visit(const torch::nn::Module& module, const std::string& prefix, std::string unit, bool in_block) {
    const bool is_block = dynamic_cast<const nn::Block*>(&module) != nullptr;
    in_block |= is_block;
    if (is_block && elements_of(module) >= min_unit_elements_)
      unit = prefix.substr(0, prefix.size() - !prefix.empty());
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      add(module, prefix, unit, in_block, item.key(), item.value());
    for (const auto& item : module.named_buffers(/*recurse=*/false)) {
      if (item.value().defined()) result.buffers.emplace_back(prefix + item.key(), item.value());
    }
    for (const auto& child : module.named_children())
      visit(*child.value(), prefix + child.key() + ".", unit, in_block);
  }

 private:
  static int64_t elements_of(const torch::nn::Module& module) {
    int64_t elements = 0;
    for (const Tensor& parameter : module.parameters())
      elements += parameter.defined() ? parameter.numel() : 0;
    return elements;
  }

  void add(const torch::nn::Module& owner, const std::string& prefix, const std::string& unit, bool in_block,
           const std::string& name, const Tensor& tensor) {
    if (!tensor.defined()) return;
    if (!seen_.insert(tensor.unsafeGetTensorImpl()).second) {
      for (NamedParameter& known : result.trainable) {
        if (!known.tensor.is_same(tensor)) continue;
        known.sparse = false;  // a tied table is not only looked up
        if (known.unit != unit) known.unit = "";
      }
      return;
    }
    const std::string full_name = prefix + name;
    TensorLayout layout = nn::LayerParameter{full_name, name, &owner, tensor}.layout();
    if (!tensor.requires_grad()) {
      if (layout.local() != layout.global)
        throw ConfigError(
            "parameter {} is frozen, and cut over {}; a frozen parameter must be whole on each rank",
            full_name, name_of(layout.cuts[0].over));
      result.frozen.emplace_back(full_name, tensor);
      return;
    }
    check_trainable(full_name, tensor,
                    result.trainable.empty() ? tensor.device() : result.trainable[0].tensor.device());
    const auto* table = dynamic_cast<const nn::Embedding*>(&owner);
    result.trainable.push_back({.name = full_name,
                                .unit = unit,
                                .tensor = tensor,
                                .layout = std::move(layout),
                                .weight_decay = nn::has_weight_decay(owner, name),
                                .is_hidden_matrix = in_block && tensor.dim() == 2 && !is_table(owner),
                                .sparse = table != nullptr && table->sparse && tensor.is_same(table->weight),
                                .row_hook = table == nullptr ? nullptr : table->hook});
  }

  const int64_t min_unit_elements_;
  std::unordered_set<const void*> seen_;
};

// The index of the first group that `name` matches, or the number of groups.
size_t group_of(const std::string& name, const std::vector<ParameterGroup>& groups) {
  size_t i = 0;
  while (i < groups.size() && ::fnmatch(groups[i].pattern.c_str(), name.c_str(), 0) != 0) ++i;
  return i;
}

void require_members(const std::vector<NamedParameter>& trainable,
                     const std::vector<ParameterGroup>& groups) {
  std::vector<int> members(groups.size() + 1, 0);
  for (const NamedParameter& parameter : trainable) ++members[group_of(parameter.name, groups)];
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!std::isfinite(groups[i].lr_factor) || groups[i].lr_factor < 0) {
      throw ConfigError("configure_optimizers: the lr_factor of \"{}\" is {}; expected at least 0",
                        groups[i].pattern, groups[i].lr_factor);
    }
    if (members[i] > 0) continue;
    std::vector<std::string> names;
    for (const NamedParameter& parameter : trainable) {
      if (names.size() < 8) names.push_back(parameter.name);
    }
    throw ConfigError(
        "configure_optimizers: no trainable parameter matches \"{}\", or all matches belong to an earlier group; parameters are named {}{}",
        groups[i].pattern, fmt::join(names, ", "), trainable.size() > names.size() ? ", ..." : "");
  }
}

ModuleTensors collect(const torch::nn::Module& module, int64_t min_unit_elements) {
  Collector collector(min_unit_elements);
  collector.visit(module, "", "", false);
  return std::move(collector.result);
}

}  // namespace

ModuleTensors collect_tensors(torch::nn::Module& module, const std::vector<ParameterGroup>& groups,
                              int64_t min_unit_elements) {
  ModuleTensors tensors = collect(module, min_unit_elements);
  require_members(tensors.trainable, groups);
  bool freezes = false;
  for (NamedParameter& parameter : tensors.trainable) {
    const size_t i = group_of(parameter.name, groups);
    if (i == groups.size() || !groups[i].frozen) continue;
    parameter.tensor.set_requires_grad(false);
    freezes = true;
  }
  if (freezes) tensors = collect(module, min_unit_elements);
  for (NamedParameter& parameter : tensors.trainable) {
    const size_t i = group_of(parameter.name, groups);
    if (i == groups.size()) continue;
    parameter.lr_factor = groups[i].lr_factor;
    parameter.weight_decay = groups[i].weight_decay.value_or(parameter.weight_decay);
  }
  return tensors;
}

}  // namespace stretto::parallel
