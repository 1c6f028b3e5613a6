#include "stretto/parallel/replicas.h"

#include <map>

#include "stretto/base/hash.h"

namespace stretto::parallel {

namespace {

constexpr int64_t longest_message = 16 << 20;  // elements; tensors are joined up to this size

void broadcast_joined(Group& group, const std::vector<Tensor>& tensors, int source) {
  std::vector<Tensor> flat;
  for (const Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  Tensor values = at::cat(flat);
  group.broadcast(values, source).wait();
  int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    tensor.copy_(values.slice(0, begin, begin + tensor.numel()).view_as(tensor));
    begin += tensor.numel();
  }
}

}  // namespace

void broadcast_tensors(Group& group, const NamedTensorList& tensors, int source) {
  if (group.size() == 1) return;
  at::NoGradGuard no_grad;
  std::map<at::ScalarType, std::vector<Tensor>> by_dtype;
  for (const auto& [name, tensor] : tensors) by_dtype[tensor.scalar_type()].push_back(tensor.detach());
  for (const auto& [dtype, alike] : by_dtype) {
    std::vector<Tensor> message;
    int64_t elements = 0;
    for (const Tensor& tensor : alike) {
      if (!message.empty() && elements + tensor.numel() > longest_message) {
        broadcast_joined(group, message, source);
        message.clear();
        elements = 0;
      }
      message.push_back(tensor);
      elements += tensor.numel();
    }
    broadcast_joined(group, message, source);
  }
}

uint64_t checksum(const Tensor& tensor) {
  const Tensor plain = tensor.detach().to(at::kCPU).contiguous();
  return hash64({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()});
}

std::optional<DivergentRank> first_divergent_rank(Group& group, uint64_t checksum, int part) {
  const auto all = group.all_gather_bytes(fmt::format("{} {}", part, checksum));
  std::map<std::string, size_t> first;  // rank by part
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const size_t reference = first.try_emplace(all[rank].substr(0, all[rank].find(' ')), rank).first->second;
    if (all[rank] == all[reference]) continue;
    return DivergentRank{group.world_rank(static_cast<int>(rank)),
                         group.world_rank(static_cast<int>(reference))};
  }
  return std::nullopt;
}

}  // namespace stretto::parallel
