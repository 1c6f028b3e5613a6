#pragma once

#include <map>
#include <string>

#include "stretto/comm/group.h"
#include "stretto/parallel/arena.h"
#include "stretto/tensor/tensor_source.h"

namespace stretto::parallel {

// The master weights of an arena that shards them, on the first rank of its group. Values are received from
// the ranks that own them when they are read. Each of these ranks calls send_weights(), which returns when
// this object is destroyed.
class GatheredWeights : public ListedSource {
 public:
  // `others`: further tensors that this rank has.
  GatheredWeights(const Arena& arena, Group& group, NamedTensors others);
  ~GatheredWeights() override;
  GatheredWeights(const GatheredWeights&) = delete;
  GatheredWeights& operator=(const GatheredWeights&) = delete;

  const std::map<std::string, TensorType>& types() const override { return types_; }
  void read(const std::string& name, const Region& region, const Tensor& values) const override;
  Tensor in_memory(const std::string& name) const override;

 private:
  Tensor gather(const Range& elements) const;

  const Arena& arena_;
  Group& group_;
  MemorySource others_;
  std::map<std::string, const Arena::Parameter*> parameters_;
  std::map<std::string, TensorType> types_;
};

// Sends the values that the first rank reads.
void send_weights(const Arena& arena, Group& group);

}  // namespace stretto::parallel
