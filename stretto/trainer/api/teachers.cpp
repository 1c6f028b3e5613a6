#include "stretto/trainer/api/teachers.h"

#include <unordered_set>

#include "stretto/base/error.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/comm/mesh.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/parallel/replicas.h"
#include "stretto/trainer/run/compute_precision.h"

namespace stretto::trainer {
namespace {

void require_own_parameters(const torch::nn::Module& teacher, const torch::nn::Module& model) {
  std::unordered_set<const void*> trained;
  for (const Tensor& parameter : model.parameters()) trained.insert(parameter.unsafeGetTensorImpl());
  for (const auto& item : teacher.named_parameters()) {
    if (!trained.contains(item.value().unsafeGetTensorImpl())) continue;
    throw ConfigError(
        "the teacher's parameter {} is also one of the model, which is trained; give the teacher a copy of its own",
        item.key());
  }
}

}  // namespace

void place_teachers(const Module& module, at::Device device, Precision precision, const Mesh& mesh) {
  at::NoGradGuard no_grad;
  for (const auto& teacher : module.teachers()) {
    require_own_parameters(*teacher, module.root());
    teacher->to(device, compute_dtype(trainer::compute_precision(*teacher, precision).parameters));
    teacher->eval();
    parallel::NamedTensorList whole, parts;
    for (const nn::LayerParameter& parameter : nn::layer_parameters(*teacher)) {
      Tensor(parameter.tensor).set_requires_grad(false);
      (parameter.layout().cuts.empty() ? whole : parts).emplace_back(parameter.name, parameter.tensor);
    }
    for (const auto& item : teacher->named_buffers()) {
      if (item.value().defined()) whole.emplace_back(item.key(), item.value());
    }
    parallel::broadcast_tensors(mesh.world(), whole);
    parallel::broadcast_tensors(mesh.group(Axes::sum), parts);
  }
}

std::string describe_teachers(const Module& module) {
  std::string lines;
  for (const auto& teacher : module.teachers()) {
    int64_t elements = 0, bytes = 0;
    for (const Tensor& parameter : teacher->parameters()) {
      elements += parameter.numel();
      bytes += static_cast<int64_t>(parameter.nbytes());
    }
    lines += fmt::format("teacher    {} parameters, frozen, {:.1f} MiB per rank\n", elements,
                         static_cast<double>(bytes) / (1 << 20));
  }
  return lines;
}

}  // namespace stretto::trainer
