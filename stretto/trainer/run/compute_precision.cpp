#include "stretto/trainer/run/compute_precision.h"

#include <ranges>

#include "stretto/base/enum_names.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/layer_kinds.h"

namespace stretto::trainer {

ComputePrecision compute_precision(const torch::nn::Module& module, Precision precision) {
  if (!is_half(precision)) return {precision, std::nullopt};
  const nn::LayerKinds layers = nn::layer_kinds(module);
  return {.parameters = layers.own.empty() && !layers.other.empty() ? Precision::fp32 : precision,
          .autocast = layers.other.empty() ? std::nullopt : std::optional(compute_dtype(precision))};
}

std::string describe_precision(Precision precision, const ComputePrecision& compute, at::Device device) {
  const bool widened = precision == Precision::bf16 && device.is_cpu() && !nn::cpu_has_bf16();
  const bool fp16 = compute.parameters == Precision::fp16 && device.is_cpu();
  return std::string(name_of(precision)) + (compute.autocast ? " (autocast)" : "") +
         (widened ? " (this CPU has no bf16 instructions: matmuls are computed in fp32 and rounded)" : "") +
         (fp16 ? " (on CPUs each operation is computed in fp32 and rounded; bf16 is faster)" : "");
}

ComputeCopies::ComputeCopies(torch::nn::Module& module, const ComputePrecision& compute) {
  const at::NoGradGuard no_grad;
  const at::ScalarType dtype = compute_dtype(compute.parameters);
  const auto cast = [&](const Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_floating_point() || tensor.scalar_type() == dtype) return;
    originals_.emplace_back(tensor, tensor.detach());
    tensor.set_data(tensor.to(dtype));
  };
  for (const Tensor& parameter : module.parameters()) cast(parameter);
  for (const Tensor& buffer : module.buffers()) cast(buffer);
}

ComputeCopies::~ComputeCopies() {
  const at::NoGradGuard no_grad;
  for (auto& [tensor, original] : std::views::reverse(originals_)) tensor.set_data(original);
}

}  // namespace stretto::trainer
