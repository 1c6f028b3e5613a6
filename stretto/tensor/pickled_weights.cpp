#include "stretto/tensor/pickled_weights.h"

#include <array>

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include "stretto/base/error.h"
#include "stretto/weights/torch_file.h"

namespace stretto {
namespace {

constexpr std::array dtypes = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                               at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};

at::ScalarType parse_dtype(const std::string& name) {
  for (const at::ScalarType dtype : dtypes)
    if (name == safetensors_dtype(dtype)) return dtype;
  throw DataError("{} is not the type of a tensor", name);
}

// A view of the file's memory, which it keeps alive.
Tensor load(const weights::TorchFile& file, const weights::PickledTensor& tensor) {
  const at::TensorOptions options(parse_dtype(tensor.dtype));
  if (tensor.storage_size == 0) return at::empty_strided(tensor.shape, tensor.strides, options);
  std::byte* const bytes = file.storage(tensor);
  const auto keep_mapped = [mapping = file.mapping()](void*) {};
  const Tensor mapped = at::from_blob(bytes, {tensor.storage_size}, keep_mapped, options);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes) % mapped.element_size() == 0;
  return (aligned ? mapped : mapped.clone()).as_strided(tensor.shape, tensor.strides, tensor.offset);
}

}  // namespace

NamedTensors load_pickled_weights(const std::filesystem::path& path) {
  const weights::TorchFile file(path);
  NamedTensors weights;
  for (const auto& [name, tensor] : file.tensors()) weights.emplace(name, load(file, tensor));
  return weights;
}

std::vector<std::string> pickled_weight_names(const std::filesystem::path& path) {
  std::vector<std::string> names;
  const weights::TorchFile file(path);
  for (const auto& [name, tensor] : file.tensors()) names.push_back(name);
  return names;
}

}  // namespace stretto
