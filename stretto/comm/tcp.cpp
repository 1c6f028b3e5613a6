#include "stretto/base/error.h"
#include "stretto/comm/backends.h"
#include "stretto/comm/socket_collectives.h"
#include "stretto/comm/socket_messages.h"

namespace stretto::comm {
namespace {

// Authenticated TCP connections as a back end of c10d.
class Tcp : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  Tcp(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline)
      : c10d::Backend(sockets->rank(), sockets->size()),
        messages_(sockets, deadline),
        collectives_(std::move(sockets), deadline) {}

  const std::string getBackendName() const override { return "tcp"; }

  WorkPtr allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const Tensor tensor = only_one(tensors);
    return collectives_.all_reduce(tensor.data_ptr(), call_of(tensor.numel(), tensor, 0, &options.reduceOp),
                                   {tensor});
  }
  WorkPtr reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) override {
    const Tensor tensor = only_one(tensors);
    return collectives_.reduce(
        tensor.data_ptr(),
        call_of(tensor.numel(), tensor, static_cast<int>(options.rootRank), &options.reduceOp), {tensor});
  }
  WorkPtr broadcast(std::vector<Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    const Tensor tensor = only_one(tensors);
    return collectives_.broadcast(
        tensor.data_ptr(), call_of(tensor.numel(), tensor, static_cast<int>(options.rootRank), nullptr),
        {tensor});
  }
  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions&) override {
    return collectives_.all_gather(output.data_ptr(), input.const_data_ptr(),
                                   call_of(input.numel(), input, 0, nullptr), {output, input});
  }
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    const Tensor sums = input.clone();
    return collectives_.reduce_scatter(output.data_ptr(), sums.data_ptr(),
                                       call_of(output.numel(), output, 0, &options.reduceOp), {output, sums});
  }
  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions&) override {
    if (!output_sizes.empty() || !input_sizes.empty())
      throw DistributedError("all_to_all supports equal pieces only");
    return collectives_.all_to_all(output.data_ptr(), input.const_data_ptr(),
                                   call_of(input.numel() / getSize(), input, 0, nullptr), {output, input});
  }
  WorkPtr barrier(const c10d::BarrierOptions&) override { return collectives_.barrier(); }
  WorkPtr send(std::vector<Tensor>& tensors, int destination, int tag) override {
    return messages_.send(only_one(tensors), destination, tag);
  }
  WorkPtr recv(std::vector<Tensor>& tensors, int source, int tag) override {
    return messages_.receive(only_one(tensors), source, tag);
  }

 private:
  SocketMessages messages_;
  SocketCollectives collectives_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_tcp(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const GroupOptions& options) {
  return c10::make_intrusive<Tcp>(std::make_shared<PeerSockets>(*store, rank, size, options),
                                  options.deadline);
}

}  // namespace stretto::comm
