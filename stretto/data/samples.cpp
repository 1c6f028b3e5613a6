#include "stretto/data/samples.h"

#include "stretto/base/error.h"

namespace stretto::data {
namespace {

const Tensor& tensor_of(const Sample& sample, size_t index, const std::string& name) {
  const auto found = sample.find(name);
  if (found != sample.end()) return found->second;
  throw DataError("sample {} of the batch has no tensor \"{}\", which its first one has", index, name);
}

// The smallest shape that contains all tensors.
std::vector<int64_t> common_shape(const std::string& name, const std::vector<Tensor>& tensors) {
  std::vector<int64_t> shape = tensors[0].sizes().vec();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].dim() != tensors[0].dim() || tensors[i].scalar_type() != tensors[0].scalar_type()) {
      throw DataError(
          "tensor \"{}\" is {} in the first sample of the batch and {} in sample {}: samples may differ in size, not in type or number of dimensions",
          name, describe(tensors[0]), describe(tensors[i]), i);
    }
    for (size_t d = 0; d < shape.size(); ++d)
      shape[d] = std::max(shape[d], tensors[i].size(static_cast<int64_t>(d)));
  }
  return shape;
}

Tensor padded(const Tensor& tensor, const std::vector<int64_t>& shape, double value) {
  if (tensor.sizes() == at::IntArrayRef(shape)) return tensor;
  Tensor result = at::full(shape, value, tensor.options());
  Tensor content = result;
  for (int64_t d = 0; d < tensor.dim(); ++d) content = content.narrow(d, 0, tensor.size(d));
  content.copy_(tensor);
  return result;
}

}  // namespace

Batch pad_and_stack(std::span<const Sample> samples, const PadValues& pad_values) {
  Batch batch;
  if (samples.empty()) return batch;
  for (const auto& [name, first] : samples[0]) {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < samples.size(); ++i) tensors.push_back(tensor_of(samples[i], i, name));
    const std::vector<int64_t> shape = common_shape(name, tensors);
    const auto given = pad_values.find(name);
    for (Tensor& tensor : tensors)
      tensor = padded(tensor, shape, given == pad_values.end() ? 0 : given->second);
    batch.tensors[name] = at::stack(tensors);
  }
  return batch;
}

Batch SampleDataset::pack_with(std::span<const int64_t> indices, const Collate& collate) const {
  std::vector<Sample> samples;
  for (const int64_t index : indices) samples.push_back(sample(index));
  Batch batch = samples.empty() ? Batch() : collate(samples);
  batch.sample_ids.assign(indices.begin(), indices.end());
  batch.count = std::ssize(indices);
  return batch;
}

Batch SampleDataset::pack(std::span<const int64_t> indices) const {
  return pack_with(indices, [](std::span<const Sample> samples) { return pad_and_stack(samples); });
}

}  // namespace stretto::data
