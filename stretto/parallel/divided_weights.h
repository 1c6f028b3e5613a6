#pragma once

#include <map>
#include <string>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/parallel/arena.h"
#include "stretto/tensor/tensor_source.h"

namespace stretto::parallel {

// The elements of `wanted`, a region of a tensor, as a vector on every rank of `group`, from the pieces of
// the tensor that the ranks have, which do not overlap. Values keep their bits. Collective.
Tensor join_pieces(const std::vector<Piece>& pieces, const Region& wanted, const at::TensorOptions& options,
                   Group& group);

// The ranks of a group, among which tensors are divided.
class PartsOverGroup : public optim::TensorParts {
 public:
  explicit PartsOverGroup(Group& group) : group_(group) {}  // which must outlive this object
  int position() const override { return group_.rank(); }
  void sum(const Tensor& values) const override { reduce(values, ReduceOp::sum); }
  double largest(double value) const override;
  Tensor whole(const TensorLayout& layout, const Tensor& local) const override;

 private:
  void reduce(const Tensor& values, ReduceOp op) const;

  Group& group_;
};

// The master weights of an arena whose parameters are divided among ranks, on the first rank of their group.
// The regions that are read are received from the ranks that hold them. Each of the other ranks calls
// send_pieces(), which returns when this object is destroyed.
class DividedWeights : public ListedSource {
 public:
  // `others`: further tensors that this rank has.
  DividedWeights(const Arena& arena, Group& group, NamedTensors others);
  ~DividedWeights() override;
  DividedWeights(const DividedWeights&) = delete;
  DividedWeights& operator=(const DividedWeights&) = delete;

  const std::map<std::string, TensorType>& types() const override { return types_; }
  void read(const std::string& name, const Region& region, const Tensor& values) const override;
  Tensor in_memory(const std::string& name) const override;

 private:
  const Arena& arena_;
  Group& group_;
  MemorySource others_;
  std::map<std::string, size_t> parameters_;  // by index
  std::map<std::string, TensorType> types_;
};

// Sends the values that the first rank reads.
void send_pieces(const Arena& arena, Group& group);

}  // namespace stretto::parallel
