#include "stretto/comm/tcp.h"

#include "stretto/base/error.h"
#include "stretto/comm/backends.h"

namespace stretto::comm {

Tcp::WorkPtr Tcp::allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) {
  const Tensor tensor = only_one(tensors);
  return collectives_.all_reduce(tensor.data_ptr(), call_of(tensor.numel(), tensor, 0, &options.reduceOp),
                                 {tensor});
}

Tcp::WorkPtr Tcp::reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) {
  const Tensor tensor = only_one(tensors);
  const auto root = static_cast<int>(options.rootRank);
  return collectives_.reduce(tensor.data_ptr(), call_of(tensor.numel(), tensor, root, &options.reduceOp),
                             {tensor});
}

Tcp::WorkPtr Tcp::broadcast(std::vector<Tensor>& tensors, const c10d::BroadcastOptions& options) {
  const Tensor tensor = only_one(tensors);
  const auto root = static_cast<int>(options.rootRank);
  return collectives_.broadcast(tensor.data_ptr(), call_of(tensor.numel(), tensor, root, nullptr), {tensor});
}

Tcp::WorkPtr Tcp::_allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions&) {
  return collectives_.all_gather(output.data_ptr(), input.const_data_ptr(),
                                 call_of(input.numel(), input, 0, nullptr), {output, input});
}

Tcp::WorkPtr Tcp::_reduce_scatter_base(Tensor& output, Tensor& input,
                                       const c10d::ReduceScatterOptions& options) {
  const Tensor sums = input.clone();
  return collectives_.reduce_scatter(output.data_ptr(), sums.data_ptr(),
                                     call_of(output.numel(), output, 0, &options.reduceOp), {output, sums});
}

Tcp::WorkPtr Tcp::alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_sizes,
                                std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions&) {
  if (!output_sizes.empty() || !input_sizes.empty())
    throw DistributedError("all_to_all supports equal pieces only");
  return collectives_.all_to_all(output.data_ptr(), input.const_data_ptr(),
                                 call_of(input.numel() / getSize(), input, 0, nullptr), {output, input});
}

Tcp::WorkPtr Tcp::barrier(const c10d::BarrierOptions&) { return collectives_.barrier(); }

Tcp::WorkPtr Tcp::send(std::vector<Tensor>& tensors, int destination, int tag) {
  return messages_.send(only_one(tensors), destination, tag);
}

Tcp::WorkPtr Tcp::recv(std::vector<Tensor>& tensors, int source, int tag) {
  return messages_.receive(only_one(tensors), source, tag);
}

c10::intrusive_ptr<c10d::Backend> make_tcp(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const GroupOptions& options) {
  return c10::make_intrusive<Tcp>(std::make_shared<PeerSockets>(*store, rank, size, options),
                                  options.deadline);
}

}  // namespace stretto::comm
