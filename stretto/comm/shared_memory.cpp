#include "stretto/comm/shared_memory.h"

#include <algorithm>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/comm/backends.h"

namespace stretto::comm {
namespace {

using Exchange = std::shared_ptr<SharedExchange>;

class CollectiveWork : public c10d::Work {
 public:
  CollectiveWork(Exchange exchange, uint64_t number) : exchange_(std::move(exchange)), number_(number) {}
  bool isCompleted() override { return exchange_->collectives.complete(number_); }
  bool wait(std::chrono::milliseconds) override {
    exchange_->collectives.wait(number_, exchange_->deadline);
    return true;
  }

 private:
  Exchange exchange_;
  uint64_t number_;
};

// A message to or from `peer`; `move` posts or takes it where possible, and returns whether it has.
class MessageWork : public c10d::Work {
 public:
  MessageWork(Exchange exchange, int peer, std::function<bool()> move)
      : exchange_(std::move(exchange)), peer_(peer), move_(std::move(move)) {
    isCompleted();
  }
  bool isCompleted() override {
    if (move_ && move_()) move_ = nullptr;
    return !move_;
  }
  bool wait(std::chrono::milliseconds) override {
    exchange_->collectives.drive([this] { return isCompleted(); }, [this] { return peer_; },
                                 exchange_->deadline);
    return true;
  }

 private:
  Exchange exchange_;
  int peer_;
  std::function<bool()> move_;
};

std::string on_this_host(int ranks) {
  return fmt::format("shared memory, {} on this host", counted(ranks, "rank"));
}

}  // namespace

SharedMemory::SharedMemory(std::unique_ptr<HostTeam> team, std::chrono::milliseconds deadline)
    : c10d::Backend(team->me(), team->size()),
      exchange_(std::make_shared<SharedExchange>(std::move(team), HostRail{}, deadline)) {}

// A rank that waits in the network for another host, which waits in its rail, finds out from the rail.
SharedMemory::SharedMemory(std::unique_ptr<HostTeam> team, std::chrono::milliseconds deadline, HostRail rail,
                           c10::intrusive_ptr<Tcp> network)
    : c10d::Backend(network->getRank(), network->getSize()), network_(std::move(network)) {
  if (rail.backend) {
    const auto look = [rail = rail.backend, own_rank = team->peer(team->me()).rank,
                       world_ranks = team->world_ranks()](const NumberedCall& own) {
      const auto other = rail->collectives().call_of_previous_rank();
      if (other && other->call.number <= own.number) {
        throw DistributedError("{}",
                               describe_difference(other->rank, other->call, own_rank, own, world_ranks));
      }
    };
    network_->collectives().set_look(look);
  }
  exchange_ = std::make_shared<SharedExchange>(std::move(team), std::move(rail), deadline);
}

// The back end of collectives that shared memory does not perform. Calls in shared memory are finished first:
// the others may depend on this rank's part in them, and this rank is about to wait for the network.
c10d::Backend* SharedMemory::fallback(const NumberedCall& call) {
  if (!network_) return nullptr;
  waitForPendingWorks();
  exchange_->collectives.announce_network_call(call);
  network_->collectives().set_program_call(call);
  return network_.get();
}

NumberedCall SharedMemory::next_call(CollectiveOperation operation, CollectiveCall call) {
  call.operation = static_cast<int32_t>(operation);
  return {.call = call, .number = calls_++};
}

Allocator SharedMemory::allocator() const {
  return [segment = exchange_->collectives.team().segment()](int64_t elements, at::ScalarType dtype,
                                                             at::Device device) {
    if (!device.is_cpu()) throw Error("shared memory supports CPU tensors only");
    return segment->allocate(elements, dtype);
  };
}

SharedMemory::WorkPtr SharedMemory::start(const NumberedCall& call, const Tensor& shown,
                                          const Tensor& taken) {
  SharedTask::Request request{.call = call.call,
                              .call_number = call.number,
                              .shown = shown.defined() ? shown.const_data_ptr() : nullptr,
                              .taken = taken.defined() ? taken.mutable_data_ptr() : nullptr,
                              .keep = {shown, taken}};
  return c10::make_intrusive<CollectiveWork>(exchange_, exchange_->collectives.start(std::move(request)));
}

SharedMemory::WorkPtr SharedMemory::allreduce(std::vector<Tensor>& tensors,
                                              const c10d::AllreduceOptions& options) {
  const Tensor tensor = only_one(tensors);
  return start(
      next_call(CollectiveOperation::all_reduce, call_of(tensor.numel(), tensor, 0, &options.reduceOp)),
      tensor, tensor);
}

SharedMemory::WorkPtr SharedMemory::reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) {
  const Tensor tensor = only_one(tensors);
  const NumberedCall call =
      next_call(CollectiveOperation::reduce,
                call_of(tensor.numel(), tensor, static_cast<int>(options.rootRank), &options.reduceOp));
  if (auto* network = fallback(call)) return network->reduce(tensors, options);
  return start(call, tensor, tensor);
}

// The memory is never returned to the segment: a rank that ends first must not take it from the others. The
// kernel frees it with the segment.
Tensor SharedMemory::common(int64_t elements, at::ScalarType dtype) {
  HostTeam& team = exchange_->collectives.team();
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  Tensor offset = at::zeros({1}, at::kLong);
  if (team.me() == 0) offset.fill_(static_cast<int64_t>(team.segment()->take(bytes)));
  std::vector<Tensor> sent = {offset};
  broadcast(sent, {})->wait();
  const auto begin = static_cast<uint64_t>(offset.item<int64_t>());
  if (begin < SharedCollectives::room || begin % c10::elementSize(dtype) != 0 ||
      !team.peer(0).holds(begin, bytes)) {
    exchange_->collectives.fail(
        fmt::format("rank {} shows common memory outside of its segment: its control block is damaged",
                    team.peer(0).rank));
  }
  return at::from_blob(
      team.peer(0).data + begin, {elements}, [keep = exchange_](void*) {}, at::TensorOptions(dtype));
}

SharedMemory::WorkPtr SharedMemory::broadcast(std::vector<Tensor>& tensors,
                                              const c10d::BroadcastOptions& options) {
  const Tensor tensor = only_one(tensors);
  const NumberedCall call =
      next_call(CollectiveOperation::broadcast,
                call_of(tensor.numel(), tensor, static_cast<int>(options.rootRank), nullptr));
  if (auto* network = fallback(call)) return network->broadcast(tensors, options);
  const bool is_root = options.rootRank == getRank();
  return start(call, is_root ? tensor : Tensor(), is_root ? Tensor() : tensor);
}

SharedMemory::WorkPtr SharedMemory::_allgather_base(Tensor& output, Tensor& input,
                                                    const c10d::AllgatherOptions& options) {
  const NumberedCall call =
      next_call(CollectiveOperation::all_gather, call_of(input.numel(), input, 0, nullptr));
  if (auto* network = fallback(call)) return network->_allgather_base(output, input, options);
  return start(call, input, output);
}

SharedMemory::WorkPtr SharedMemory::_reduce_scatter_base(Tensor& output, Tensor& input,
                                                         const c10d::ReduceScatterOptions& options) {
  const NumberedCall call =
      next_call(CollectiveOperation::reduce_scatter, call_of(output.numel(), input, 0, &options.reduceOp));
  if (auto* network = fallback(call)) return network->_reduce_scatter_base(output, input, options);
  return start(call, input, output);
}

SharedMemory::WorkPtr SharedMemory::alltoall_base(Tensor& output, Tensor& input,
                                                  std::vector<int64_t>& output_sizes,
                                                  std::vector<int64_t>& input_sizes,
                                                  const c10d::AllToAllOptions& options) {
  if (!output_sizes.empty() || !input_sizes.empty())
    throw DistributedError("all_to_all supports equal pieces only");
  const NumberedCall call =
      next_call(CollectiveOperation::all_to_all, call_of(input.numel() / getSize(), input, 0, nullptr));
  if (auto* network = fallback(call))
    return network->alltoall_base(output, input, output_sizes, input_sizes, options);
  return start(call, input, output);
}

SharedMemory::WorkPtr SharedMemory::barrier(const c10d::BarrierOptions& options) {
  const NumberedCall call = next_call(CollectiveOperation::barrier, call_of(0, Tensor(), 0, nullptr));
  if (auto* network = fallback(call)) return network->barrier(options);
  return start(call, Tensor(), Tensor());
}

// Wraps a message of the network, so that a rank that waits for it makes progress on the reductions that it
// has begun.
SharedMemory::WorkPtr SharedMemory::driven(WorkPtr message) {
  return c10::make_intrusive<MessageWork>(exchange_, SharedCollectives::other_host,
                                          [message = std::move(message)] {
                                            if (!message->isCompleted()) return false;
                                            message->wait();
                                            return true;
                                          });
}

SharedMemory::WorkPtr SharedMemory::send(std::vector<Tensor>& tensors, int destination, int tag) {
  if (network_) return driven(network_->send(tensors, destination, tag));
  const uint64_t number = exchange_->messages.send(destination, tag, only_one(tensors));
  return c10::make_intrusive<MessageWork>(
      exchange_, destination, [exchange = exchange_, number] { return exchange->messages.sent(number); });
}

SharedMemory::WorkPtr SharedMemory::recv(std::vector<Tensor>& tensors, int source, int tag) {
  if (network_) return driven(network_->recv(tensors, source, tag));
  const uint64_t number = exchange_->messages.next_number(source, tag);
  return c10::make_intrusive<MessageWork>(
      exchange_, source, [exchange = exchange_, source, tag, number, tensor = only_one(tensors)] {
        return exchange->messages.take(source, tag, number, tensor);
      });
}

CpuTransport make_cpu_transport(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                const GroupOptions& options) {
  Hosts hosts = exchange_hosts(*store, rank, size, options, SharedCollectives::room);
  if (hosts.team && hosts.ranks.size() == 1) {
    auto shared = c10::make_intrusive<SharedMemory>(std::move(hosts.team), options.deadline);
    return {shared, shared, on_this_host(size)};
  }
  const auto connect = [&](const c10::intrusive_ptr<c10d::Store>& rendezvous, int own, int ranks,
                           std::vector<int> members) {
    return c10::make_intrusive<Tcp>(
        std::make_shared<PeerSockets>(*rendezvous, own, ranks, options, std::move(members)),
        options.deadline);
  };
  const auto network = connect(store, rank, size, {});
  if (!hosts.refusal.empty()) {
    return {network, nullptr, fmt::format("TCP, since there is no shared memory: {}", hosts.refusal)};
  }
  const std::string between =
      fmt::format("TCP between {} hosts{}", hosts.ranks.size(), options.encrypt ? ", encrypted" : "");
  if (static_cast<size_t>(size) == hosts.ranks.size()) return {network, nullptr, between};

  HostRail rail = {.rails = size};
  for (const auto& ranks : hosts.ranks) rail.rails = std::min(rail.rails, static_cast<int>(ranks.size()));
  if (hosts.team->me() < rail.rails) {
    const auto rendezvous =
        c10::make_intrusive<c10d::PrefixStore>(fmt::format("rail.{}", hosts.team->me()), store);
    std::vector<int> ranks;
    for (const auto& of_host : hosts.ranks) ranks.push_back(of_host[static_cast<size_t>(hosts.team->me())]);
    rail.backend =
        connect(rendezvous, static_cast<int>(hosts.own), static_cast<int>(hosts.ranks.size()), ranks);
  }
  const std::string inside = on_this_host(hosts.team->size()) + "; ";
  auto shared =
      c10::make_intrusive<SharedMemory>(std::move(hosts.team), options.deadline, std::move(rail), network);
  return {shared, shared, inside + between};
}

}  // namespace stretto::comm
