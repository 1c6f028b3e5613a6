#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stretto/base/region.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

struct Range;
struct TensorLayout;

using NamedTensors = std::map<std::string, Tensor>;

// A source of tensors' values: files, a seed, memory. Names and regions are those of global tensors
// (base/tensor_layout.h), so that under any mesh and strategy a rank reads only the parts that it needs.
// Equal regions have equal values, however a tensor is divided.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual bool has(const std::string& name) const = 0;

  // The shape of a global tensor. REQUIRES: has(name).
  virtual std::vector<int64_t> shape(const std::string& name) const = 0;

  // Fills `values` with the elements of a region of a tensor, in row-major order, converted to its dtype and
  // device. REQUIRES: has(name), the region lies in the tensor, and `values` has as many elements; they may
  // have gaps in memory.
  virtual void read(const std::string& name, const Region& region, const Tensor& values) const = 0;

  // The whole tensor, with shape(name) and any dtype, if it is in memory that may be shared instead of
  // copied, such as a mapped file; undefined if it must be read.
  virtual Tensor in_memory(const std::string& /*name*/) const { return {}; }
};

// Throws DataError with both shapes unless the source's tensor has this shape.
void require_shape(const TensorSource& source, const std::string& name, const std::vector<int64_t>& shape);

// Reads the row-major elements `elements` of a rank's part of a tensor with this layout. Throws like
// require_shape().
void read_elements(const TensorSource& source, const std::string& name, const TensorLayout& layout,
                   const Range& elements, const Tensor& values);

// A global tensor.
struct TensorType {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape = {};
};

// A source that can list its tensors, for example to write them to a file. Its values need not be on this
// rank.
class ListedSource : public TensorSource {
 public:
  virtual const std::map<std::string, TensorType>& types() const = 0;
  bool has(const std::string& name) const override { return types().contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return types().at(name).shape; }
  // Returns a copy of a tensor, of shape(name), in new CPU memory.
  Tensor copy(const std::string& name) const;
};

// Tensors in memory: those of a module or of mapped files (hf_folder.h, safetensors.h).
class MemorySource : public ListedSource {
 public:
  explicit MemorySource(NamedTensors tensors);
  const std::map<std::string, TensorType>& types() const override { return types_; }
  void read(const std::string& name, const Region& region, const Tensor& values) const override;
  Tensor in_memory(const std::string& name) const override;

 private:
  NamedTensors tensors_;
  std::map<std::string, TensorType> types_;
};

// Two sources joined: a tensor comes from the first one if it has the tensor.
class JoinedSources : public TensorSource {
 public:
  JoinedSources(std::unique_ptr<const TensorSource> first, std::unique_ptr<const TensorSource> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  bool has(const std::string& name) const override { return first_->has(name) || second_->has(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return of(name).shape(name); }
  void read(const std::string& name, const Region& region, const Tensor& values) const override {
    of(name).read(name, region, values);
  }
  Tensor in_memory(const std::string& name) const override { return of(name).in_memory(name); }

 private:
  const TensorSource& of(const std::string& name) const { return first_->has(name) ? *first_ : *second_; }
  std::unique_ptr<const TensorSource> first_, second_;
};

}  // namespace stretto
