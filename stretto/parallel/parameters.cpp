#include "stretto/parallel/parameters.h"

#include <cctype>
#include <unordered_set>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/nn/layers.h"

namespace stretto {
namespace {

std::string unit_of(const std::string& name) {
  std::string unit;
  for (const std::string_view piece : split(name, '.')) {
    unit += (unit.empty() ? "" : ".") + std::string(piece);
    if (parse_int(piece)) return unit;
  }
  return "";
}

void check_trainable(const std::string& name, const Tensor& tensor, at::Device device) {
  if (!tensor.is_floating_point() || tensor.layout() != at::kStrided) {
    throw ConfigError("parameter {} is {}; only dense real floating-point parameters can be trained: freeze it "
                      "(requires_grad = false) or make it a buffer",
                      name, describe(tensor));
  }
  if (tensor.device() != device) {
    throw ConfigError("parameter {} is on {}, others are on {}; a model must lie on one device", name,
                      tensor.device().str(), device.str());
  }
}

}  // namespace

ModuleTensors collect_tensors(const torch::nn::Module& module) {
  ModuleTensors result;
  std::unordered_set<const void*> seen;
  const auto full_name = [](const std::string& owner, const std::string& name) {
    return owner.empty() ? name : owner + "." + name;
  };
  for (const auto& owner : module.named_modules()) {
    for (const auto& item : owner.value()->named_parameters(/*recurse=*/false)) {
      const Tensor& tensor = item.value();
      if (!tensor.defined() || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
      const std::string name = full_name(owner.key(), item.key());
      if (!tensor.requires_grad()) {
        result.constant.emplace_back(name, tensor);
        continue;
      }
      check_trainable(name, tensor, result.trained.empty() ? tensor.device() : result.trained[0].tensor.device());
      result.trained.push_back({name, unit_of(name), tensor, nn::has_weight_decay(*owner.value(), item.key())});
    }
    for (const auto& item : owner.value()->named_buffers(/*recurse=*/false)) {
      if (item.value().defined()) result.constant.emplace_back(full_name(owner.key(), item.key()), item.value());
    }
  }
  return result;
}

}  // namespace stretto
