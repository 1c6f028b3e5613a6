#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stretto/kernels/reduce_op.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

// A collective in progress. The tensors that it reads and writes must not change until wait() has returned.
class [[nodiscard]] Work {
 public:
  Work() = default;
  // `wait` blocks until the collective is done. `what` describes the call for messages. `keep`: tensors of
  // any shape that the back end uses until then.
  Work(std::function<void()> wait, std::string what, std::vector<Tensor> keep);

  // Blocks until the result is available. Throws DistributedError, with the operation, its shape and this
  // rank, when a peer has ended or the group's deadline has passed.
  void wait();

 private:
  std::function<void()> wait_;
  std::string what_;
  std::vector<Tensor> keep_;  // kept alive while the back end uses them
};

// The rendezvous store, through which ranks exchange addresses (connect_store() in job.h); opaque to keep
// c10d out of this header.
struct StoreHandle;

// A store in the memory of this process, for ranks that are threads and for a single rank.
std::shared_ptr<StoreHandle> memory_store();

// Settings of a Group. All ranks pass equal values, except for address, host and device.
struct GroupOptions {
  // The deadline of each collective. It is longer than the launcher's --hang-timeout, whose report names the
  // missing rank and the reason.
  std::chrono::milliseconds deadline{600'000};
  std::string name = "world";         // for messages
  std::vector<int> world_ranks = {};  // the number in the job of each rank; empty: these are all of the job
  std::string address = "127.0.0.1";  // the local address that peers connect to
  std::string secret = "";            // of the job, which peers must know to connect
  bool encrypt = false;               // TCP connections are encrypted (cluster/tls.h); REQUIRES: a secret
  std::string host = "";              // ranks with the same name share memory; "": determined from the system
  at::Device device = at::kCPU;       // of this rank's tensors; nccl: the GPU with its index

  // Debugs mismatched calls: before each collective, all ranks exchange through the store the call that they
  // are about to make. If two calls differ, all ranks throw DistributedError with both calls instead of
  // hanging or mixing up data.
  bool compare_calls = false;
};

// Ranks that communicate. Every rank of a group must call the same collectives in the same order, with equal
// shapes and types; tensors must be contiguous. Calls return at once with the Work to wait for; they throw
// ShapeError for tensors that do not fit the call, ConfigError for those on another device and
// DistributedError if ranks make different calls. Not thread-safe. In shared memory a rank moves data only
// while it is inside this group's calls: a rank that waits for something else in between, for example another
// group's message, delays the others. Mismatched calls are errors that name both within 2 seconds.
class Group {
 public:
  // `store` must be shared by exactly these ranks. backend: "shm" (CPU tensors: shared memory between ranks
  // of one host, TCP between hosts), "tcp", "gloo", "mpi" (CPU tensors) or "nccl" (CUDA tensors). Throws
  // ConfigError for an unknown back end, a device that it does not support and `encrypt` with one that cannot
  // encrypt, DistributedError if the
  // ranks do not find each other.
  Group(const std::string& backend, std::shared_ptr<StoreHandle> store, int rank, int size,
        GroupOptions options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // The number in the job of a rank of this group: messages name ranks by it. REQUIRES: 0 <= rank < size().
  int world_rank(int rank) const;

  // A nonzero number that identifies the group: equal on all its ranks and different for every other group.
  uint64_t id() const;

  const std::string& backend() const { return backend_name_; }

  // The device of tensors that are passed to this group: the CPU, or this rank's GPU.
  at::Device device() const { return options_.device; }

  // The host of this rank. Two ranks have equal hosts if and only if they can share memory.
  std::string host() const;

  // The communication back end in use and, if it is not the requested one, the reason.
  const std::string& transport() const { return transport_; }

  // Seconds that this rank has spent inside this group's calls and their wait(): the part of communication
  // that does not overlap with computation, including the time spent waiting for slower ranks.
  double seconds_inside() const { return *seconds_inside_; }

  // Whether common_memory() returns a defined tensor.
  bool shares_memory() const;

  // Allocates tensors that are reduced repeatedly: ranks that share memory reduce them without copies.
  Allocator allocator() const;

  // A tensor on device(), not initialised, that is to be reduced soon, and not for long in use: ranks that
  // share memory reduce it without copies.
  Tensor scratch(at::IntArrayRef sizes, at::ScalarType dtype) const;

  // Zeroed memory that all ranks read and write, valid for the lifetime of the group. Only collectives order
  // the writes of one rank before the reads of another. Returns an undefined tensor unless all ranks share
  // memory. All ranks pass the same arguments. Collective.
  Tensor common_memory(int64_t elements, at::ScalarType dtype);

  Work all_reduce(Tensor tensor, ReduceOp op = ReduceOp::sum);  // in place
  // Reduces in place on `destination`; on other ranks the tensor's values are undefined afterwards.
  Work reduce(Tensor tensor, int destination, ReduceOp op = ReduceOp::sum);
  Work broadcast(Tensor tensor, int source);            // in place
  Work all_gather(Tensor output, const Tensor& input);  // output: size() inputs end to end
  Work reduce_scatter(Tensor output, const Tensor& input,
                      ReduceOp op = ReduceOp::sum);     // input: size() outputs
  Work all_to_all(Tensor output, const Tensor& input);  // equal pieces along dimension 0
  // Messages with one sender and one tag arrive in order. The work of a send is complete when the tensor may
  // change, possibly not before the destination has called recv: two ranks that send to each other must not
  // both wait before they call recv.
  Work send(const Tensor& tensor, int destination, int tag = 0);
  Work recv(Tensor tensor, int source, int tag = 0);
  void barrier();

  // Runs `work`, which may take long, on rank 0 while the others wait. The launcher displays `what`, such as
  // "tokenising train.tsv", if that takes long. This is not a collective: neither GroupOptions::deadline nor
  // the launcher's --hang-timeout applies to the wait. Rank 0 rethrows an exception of `work`; the other
  // ranks throw DistributedError with its message.
  void rank_0_first(const std::string& what, const std::function<void()>& work);

  // Sends bytes (decisions, names, JSON) from `source` to every rank.
  std::string broadcast_bytes(std::string bytes, int source);

  // Returns every rank's bytes, in rank order, on every rank.
  std::vector<std::string> all_gather_bytes(const std::string& bytes);

  // The group of `ranks` (of this group), numbered in that order; null on other ranks. Collective over this
  // group. Ranks of the subgroup share memory if all of them are on one host.
  std::unique_ptr<Group> subgroup(const std::vector<int>& ranks, const std::string& name);

 private:
  struct Backend;
  struct Plan;
  template <class Call>
  Work start(const Plan& plan, std::vector<Tensor> keep, const Call& call);
  void compare_with_others(const std::string& call, const std::string& detail, uint64_t sequence);
  void require_member(const char* operation, int rank) const;
  void require_multiple(const char* operation, const Tensor& large, const Tensor& small) const;

  std::string backend_name_, transport_;
  std::shared_ptr<StoreHandle> store_;
  std::unique_ptr<Backend> backend_;
  int rank_, size_;
  GroupOptions options_;
  uint64_t sequence_ = 0;  // the number of the next collective
  uint64_t messages_ = 0;  // sends and receives, which not all ranks take part in
  uint64_t works_ = 0;     // of rank_0_first
  int subgroups_ = 0;
  std::shared_ptr<double> seconds_inside_ = std::make_shared<double>(0);  // works continue to count
};

}  // namespace stretto
