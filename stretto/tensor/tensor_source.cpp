#include "stretto/tensor/tensor_source.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/range.h"
#include "stretto/base/tensor_layout.h"

namespace stretto {
namespace {

// Copies the row-major elements [begin, end) of a tensor of any strides to `values`, a contiguous vector.
void copy_elements(const Tensor& tensor, int64_t begin, int64_t end, const Tensor& values) {
  if (begin == end) return;
  if (tensor.is_contiguous()) {
    values.copy_(tensor.view({-1}).slice(0, begin, end));
    return;
  }
  const int64_t row = tensor.numel() / tensor.size(0);
  for (int64_t from = begin; from < end;) {
    const int64_t first = from / row, whole = end / row;
    if (from % row == 0 && first < whole) {
      const Tensor rows = tensor.slice(0, first, whole);
      values.slice(0, from - begin, whole * row - begin).view(rows.sizes()).copy_(rows);
      from = whole * row;
      continue;
    }
    const int64_t to = std::min(end, (first + 1) * row);
    copy_elements(tensor[first], from - first * row, to - first * row,
                  values.slice(0, from - begin, to - begin));
    from = to;
  }
}

}  // namespace

void require_shape(const TensorSource& source, const std::string& name, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> found = source.shape(name);
  if (found == shape) return;
  throw DataError("the source's {} is {}, and the parameter is {}; read the weights of the same model", name,
                  describe(at::IntArrayRef(found)), describe(at::IntArrayRef(shape)));
}

void read_elements(const TensorSource& source, const std::string& name, const TensorLayout& layout,
                   const Range& elements, const Tensor& values) {
  require_shape(source, name, layout.global);
  for (const LocalBox& box : layout.boxes(elements.begin, elements.end)) {
    source.read(
        name, box.region,
        values.as_strided(box.sizes, box.strides, values.storage_offset() + box.first - elements.begin));
  }
}

Tensor ListedSource::copy(const std::string& name) const {
  const auto& [dtype, shape] = types().at(name);
  Tensor values = at::empty(shape, dtype);
  read(name, whole_region(shape), values);
  return values;
}

MemorySource::MemorySource(NamedTensors tensors) : tensors_(std::move(tensors)) {
  for (const auto& [name, tensor] : tensors_) types_[name] = {tensor.scalar_type(), tensor.sizes().vec()};
}

void MemorySource::read(const std::string& name, const Region& region, const Tensor& values) const {
  at::NoGradGuard no_grad;
  Tensor box = tensors_.at(name).detach();
  for (size_t axis = 0; axis < region.extent.size(); ++axis)
    box = box.narrow(static_cast<int64_t>(axis), region.offset[axis], region.extent[axis]);
  if (values.is_contiguous())
    return copy_elements(box, region.flat_begin, region.flat_end, values.view({-1}));
  const Tensor dense = at::empty({region.elements()}, values.options());
  copy_elements(box, region.flat_begin, region.flat_end, dense);
  values.copy_(dense.view(values.sizes()));
}

Tensor MemorySource::in_memory(const std::string& name) const { return tensors_.at(name); }

}  // namespace stretto
