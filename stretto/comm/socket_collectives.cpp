#include "stretto/comm/socket_collectives.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/kernels/reduce.h"

namespace stretto::comm {
namespace {

using Channel = PeerSockets::Channel;

// Below this size, all-reduce gathers all contributions and sums them locally, which takes half the steps.
constexpr size_t small_bytes = size_t{64} << 10;

}  // namespace

// One call on the ring of a group's ranks.
class SocketCollectives::Ring {
 public:
  // `program`: the collective of the program that `call` is a part of.
  Ring(SocketCollectives& of, const NumberedCall& program, const NumberedCall& call)
      : of_(of),
        sockets_(*of.sockets_),
        program_(program),
        numbered_(call),
        deadline_(cluster::Clock::now() + of.deadline_) {}

  int me() const { return sockets_.rank(); }
  int size() const { return sockets_.size(); }
  const CollectiveCall& call() const { return numbered_.call; }
  int root() const { return call().root; }
  size_t element() const { return c10::elementSize(static_cast<at::ScalarType>(call().dtype)); }
  size_t block() const { return static_cast<size_t>(call().count) * element(); }  // bytes
  int at(int distance) const { return ((me() + distance) % size() + size()) % size(); }

  void move(SocketTransfer streams, int to, int from) const {
    if (to >= 0) streams.to = {sockets_.shown_rank(to), sockets_.fd(to, Channel::collectives)};
    if (from >= 0) streams.from = {sockets_.shown_rank(from), sockets_.fd(from, Channel::collectives)};
    streams.program = program_;
    streams.transfer = numbered_;
    streams.own_rank = sockets_.shown_rank(me());
    streams.world_ranks = sockets_.world_ranks();
    if (of_.look_) streams.look = [this] { of_.look_(program_); };
    transfer(streams, deadline_, of_.abort_.fd());
  }
  void around(SocketTransfer streams) const { move(std::move(streams), at(1), at(-1)); }

  // The bytes of the part of `data` that `owner` sums: `data` is cut into as many parts as there are ranks.
  Incoming part(std::byte* data, int owner, bool reduce = false) const {
    const int64_t count = call().count, begin = count * owner / size(), end = count * (owner + 1) / size();
    return {data + static_cast<size_t>(begin) * element(), static_cast<size_t>(end - begin) * element(),
            reduce};
  }
  // The block of `rank` in `data`, which has one block per rank.
  Incoming block_of(std::byte* data, int rank, bool reduce = false) const {
    return {data + static_cast<size_t>(rank) * block(), block(), reduce};
  }
  void reduce_blocks(const std::byte* blocks, void* to) const {
    std::vector<const void*> in;
    for (int rank = 0; rank < size(); ++rank) in.push_back(blocks + static_cast<size_t>(rank) * block());
    const std::array<void*, 1> out = {to};
    kernels::reduce(static_cast<ReduceOp>(call().reduce), static_cast<at::ScalarType>(call().dtype), in, out,
                    call().count);
  }

 private:
  const SocketCollectives& of_;
  const PeerSockets& sockets_;
  const NumberedCall program_, numbered_;
  const cluster::Clock::time_point deadline_;
};

namespace {

Outgoing sent(const Incoming& part) { return {part.data, part.bytes}; }
std::byte* bytes_of(void* data) { return static_cast<std::byte*>(data); }
std::byte* bytes_of(const void* data) { return const_cast<std::byte*>(static_cast<const std::byte*>(data)); }

}  // namespace

SocketCollectives::SocketCollectives(std::shared_ptr<PeerSockets> sockets, std::chrono::milliseconds deadline)
    : sockets_(std::move(sockets)),
      deadline_(deadline),
      thread_(
          {.error =
               [](const std::string& why) { return std::make_exception_ptr(DistributedError("{}", why)); },
           .abort = [this] { abort_.wake(); },
           .failed = [this](const auto&) { close_connections(); }}) {}

// After a failure the positions of the streams are unknown. The closed connections notify the other ranks.
void SocketCollectives::close_connections() {
  for (int peer = 0; peer < sockets_->size(); ++peer)
    if (peer != sockets_->rank()) sockets_->close(peer, Channel::collectives);
}

SocketCollectives::WorkPtr SocketCollectives::start(CollectiveOperation operation, CollectiveCall call,
                                                    std::vector<at::Tensor> keep,
                                                    std::function<void(const Ring&)> run) {
  call.operation = static_cast<int32_t>(operation);
  const NumberedCall numbered = {.call = call, .number = calls_++};
  {
    const std::lock_guard lock(idle_);
    ++running_;
  }
  const auto begin = [this, numbered, program = program_call_.value_or(numbered), run = std::move(run)] {
    run(Ring(*this, program, numbered));
    const std::lock_guard lock(idle_);
    --running_;
  };
  return thread_.start(std::move(keep), begin);
}

std::optional<SocketCollectives::PeerCall> SocketCollectives::call_of_previous_rank() {
  const std::lock_guard lock(idle_);
  const int previous = (sockets_->rank() + sockets_->size() - 1) % sockets_->size();
  if (running_ > 0) return std::nullopt;
  const auto call = arriving_call(sockets_->fd(previous, Channel::collectives));
  if (!call) return std::nullopt;
  return PeerCall{sockets_->shown_rank(previous), *call};
}

// The first half of the steps sums each part on its way around the ring, the second half passes the sums on.
SocketCollectives::WorkPtr SocketCollectives::all_reduce(void* data, CollectiveCall call,
                                                         std::vector<at::Tensor> keep) {
  return start(CollectiveOperation::all_reduce, call, std::move(keep),
               [data = bytes_of(data)](const Ring& ring) {
                 const int n = ring.size();
                 if (n == 1) return;
                 SocketTransfer streams;
                 if (ring.block() * static_cast<size_t>(n) <= small_bytes) {
                   std::vector<std::byte> blocks(ring.block() * static_cast<size_t>(n));
                   std::memcpy(ring.block_of(blocks.data(), ring.me()).data, data, ring.block());
                   for (int step = 0; step + 1 < n; ++step) {
                     streams.out.push_back(sent(ring.block_of(blocks.data(), ring.at(-step))));
                     streams.in.push_back(ring.block_of(blocks.data(), ring.at(-step - 1)));
                   }
                   streams.lead = ring.block();
                   ring.around(std::move(streams));
                   ring.reduce_blocks(blocks.data(), data);
                   return;
                 }
                 for (int step = 0; step < 2 * (n - 1); ++step) {
                   streams.out.push_back(sent(ring.part(data, ring.at(-step))));
                   streams.in.push_back(ring.part(data, ring.at(-step - 1), /*reduce=*/step < n - 1));
                 }
                 streams.lead = streams.out[0].bytes;
                 ring.around(std::move(streams));
               });
}

// Passes partial sums along the ring, from the rank after the root to the root.
SocketCollectives::WorkPtr SocketCollectives::reduce(void* data, CollectiveCall call,
                                                     std::vector<at::Tensor> keep) {
  return start(CollectiveOperation::reduce, call, std::move(keep), [data = bytes_of(data)](const Ring& ring) {
    if (ring.size() == 1) return;
    const bool first = ring.me() == (ring.root() + 1) % ring.size(), last = ring.me() == ring.root();
    SocketTransfer streams;
    if (!last) streams.out = {{data, ring.block()}};
    if (!first) streams.in = {{data, ring.block(), /*reduce=*/true}};
    if (!first) streams.lead = 0;
    ring.move(std::move(streams), last ? -1 : ring.at(1), first ? -1 : ring.at(-1));
  });
}

SocketCollectives::WorkPtr SocketCollectives::broadcast(void* data, CollectiveCall call,
                                                        std::vector<at::Tensor> keep) {
  return start(CollectiveOperation::broadcast, call, std::move(keep),
               [data = bytes_of(data)](const Ring& ring) {
                 if (ring.size() == 1) return;
                 const bool first = ring.me() == ring.root(), last = ring.at(1) == ring.root();
                 SocketTransfer streams;
                 if (!last) streams.out = {{data, ring.block()}};
                 if (!first) streams.in = {{data, ring.block()}};
                 if (!first) streams.lead = 0;
                 ring.move(std::move(streams), last ? -1 : ring.at(1), first ? -1 : ring.at(-1));
               });
}

SocketCollectives::WorkPtr SocketCollectives::all_gather(void* out, const void* in, CollectiveCall call,
                                                         std::vector<at::Tensor> keep) {
  return start(CollectiveOperation::all_gather, call, std::move(keep),
               [out = bytes_of(out), in](const Ring& ring) {
                 std::byte* own_block = ring.block_of(out, ring.me()).data;
                 if (own_block != in && ring.block() > 0) std::memcpy(own_block, in, ring.block());
                 if (ring.size() == 1) return;
                 SocketTransfer streams;
                 for (int step = 0; step + 1 < ring.size(); ++step) {
                   streams.out.push_back(sent(ring.block_of(out, ring.at(-step))));
                   streams.in.push_back(ring.block_of(out, ring.at(-step - 1)));
                 }
                 streams.lead = ring.block();
                 ring.around(std::move(streams));
               });
}

// Sums each block on its way around the ring, which ends at its owner.
SocketCollectives::WorkPtr SocketCollectives::reduce_scatter(void* out, void* in, CollectiveCall call,
                                                             std::vector<at::Tensor> keep) {
  return start(CollectiveOperation::reduce_scatter, call, std::move(keep),
               [out, in = bytes_of(in)](const Ring& ring) {
                 if (ring.size() > 1) {
                   SocketTransfer streams;
                   for (int step = 0; step + 1 < ring.size(); ++step) {
                     streams.out.push_back(sent(ring.block_of(in, ring.at(-step - 1))));
                     streams.in.push_back(ring.block_of(in, ring.at(-step - 2), /*reduce=*/true));
                   }
                   streams.lead = ring.block();
                   ring.around(std::move(streams));
                 }
                 if (ring.block() > 0) std::memcpy(out, ring.block_of(in, ring.me()).data, ring.block());
               });
}

SocketCollectives::WorkPtr SocketCollectives::all_to_all(void* out, const void* in, CollectiveCall call,
                                                         std::vector<at::Tensor> keep) {
  return start(
      CollectiveOperation::all_to_all, call, std::move(keep),
      [out = bytes_of(out), in = bytes_of(in)](const Ring& ring) {
        if (ring.block() > 0)
          std::memcpy(ring.block_of(out, ring.me()).data, ring.block_of(in, ring.me()).data, ring.block());
        for (int distance = 1; distance < ring.size(); ++distance) {
          const int to = ring.at(distance), from = ring.at(-distance);
          ring.move({.out = {sent(ring.block_of(in, to))}, .in = {ring.block_of(out, from)}}, to, from);
        }
      });
}

// A dissemination barrier: after round k each rank knows that the 2^k ranks before it have arrived.
SocketCollectives::WorkPtr SocketCollectives::barrier() {
  const CollectiveCall call = {
      .operation = 0, .dtype = static_cast<int32_t>(at::kByte), .reduce = 0, .root = 0, .count = 0};
  return start(CollectiveOperation::barrier, call, {}, [](const Ring& ring) {
    for (int distance = 1; distance < ring.size(); distance *= 2)
      ring.move({}, ring.at(distance), ring.at(-distance));
  });
}

}  // namespace stretto::comm
