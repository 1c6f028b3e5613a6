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
  Work(std::function<void()> wait, std::string what, std::vector<Tensor> keep);

  // Blocks until the result is available. Throws DistributedError, with the operation, its shape and this rank, when a
  // peer has ended or the group's deadline has passed.
  void wait();

 private:
  std::function<void()> wait_;
  std::string what_;
  std::vector<Tensor> keep_;  // alive while the back end works on them
};

// Where ranks find each other before they can communicate (connect_store() in job.h); opaque here to keep
// c10d out of this header.
struct StoreHandle;

// A store in this process's memory, for ranks that are threads and for a rank alone.
std::shared_ptr<StoreHandle> memory_store();

struct GroupOptions {
  // Of every collective. Longer than the launcher's --hang-timeout, whose report says more: which rank is missing, and why.
  std::chrono::milliseconds deadline{600'000};
  std::string name = "world";         // for messages
  std::string address = "127.0.0.1";  // the local address that peers connect to
  std::string secret = "";            // of the job, which peers must know to connect
  std::string host = "";              // ranks with the same name share memory; "": determined from the system
  at::Device device = at::kCPU;       // of this rank's tensors; nccl: the GPU with its index

  // For debugging: before each collective all ranks exchange, through the store, what they are about to call; where two
  // differ, all throw DistributedError with both calls instead of hanging or mixing up data.
  bool compare_calls = false;
};

// Ranks that communicate. Every rank of a group must call the same collectives in the same order, with equal shapes and
// types; tensors must be contiguous. Calls return at once with the Work to wait for. Not thread-safe. In shared memory a
// rank moves data only while it is inside this group's calls: a rank that waits for something else in between, for example
// another group's message, delays the others. Where hosts have several ranks, an all_reduce that another host answers with another
// collective is detected by compare_calls alone; other calls that differ are errors that name both.
class Group {
 public:
  // `store` must be shared by exactly these ranks. backend: "shm" (CPU tensors: shared memory between ranks of one
  // host, TCP between hosts), "tcp", "gloo", "mpi" (CPU tensors) or "nccl" (CUDA tensors).
  Group(const std::string& backend, std::shared_ptr<StoreHandle> store, int rank, int size,
        GroupOptions options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Names these ranks: the same number at all of them, and another for every other group. Not 0.
  uint64_t id() const;

  const std::string& backend() const { return backend_name_; }

  // Where tensors passed to this group live: the CPU, or this rank's GPU.
  at::Device device() const { return options_.device; }

  // The host of this rank: equal for ranks that can share memory, and for no others.
  std::string host() const;

  // The communication back end in use, and where it is not the one that `backend` stands for, why.
  const std::string& transport() const { return transport_; }

  // How long this rank has been inside this group's calls and their wait() so far: the part of communication that
  // computation does not hide, waiting for slower ranks included.
  double seconds_inside() const { return *seconds_inside_; }

  // Whether common_memory() gives any.
  bool shares_memory() const;

  // Memory for tensors that are reduced repeatedly: where ranks share memory nothing is copied to send them.
  Allocator allocator() const;

  // Memory that all ranks read and write: what one writes the others see, in an order that only collectives settle. Zeroed,
  // and alive as long as the group. All ranks pass the same arguments. An undefined tensor where they do not all share
  // memory. Collective.
  Tensor common_memory(int64_t elements, at::ScalarType dtype);

  Work all_reduce(Tensor tensor, ReduceOp op = ReduceOp::sum);  // in place
  // In place at `destination`; elsewhere the tensor's values are undefined afterwards.
  Work reduce(Tensor tensor, int destination, ReduceOp op = ReduceOp::sum);
  Work broadcast(Tensor tensor, int source);            // in place
  Work all_gather(Tensor output, const Tensor& input);  // output: size() inputs end to end
  Work reduce_scatter(Tensor output, const Tensor& input,
                      ReduceOp op = ReduceOp::sum);     // input: size() outputs
  Work all_to_all(Tensor output, const Tensor& input);  // equal pieces along dimension 0
  // Messages of one sender and one tag arrive in their order. The work of a send is complete when the tensor may
  // change, which may be only once the destination has called recv: two ranks that send to each other must not both
  // wait for that before they call recv.
  Work send(const Tensor& tensor, int destination, int tag = 0);
  Work recv(Tensor tensor, int source, int tag = 0);
  void barrier();

  // Rank 0 does `work`, of any length, while the others wait for it ("tokenising train.tsv" is a good `what`, which the
  // launcher shows when it takes long). Not a collective: neither GroupOptions::deadline nor the launcher's --hang-timeout
  // applies to the wait. What `work` throws is thrown at rank 0, and with its message as a DistributedError at the others.
  void rank_0_first(const std::string& what, const std::function<void()>& work);

  // Any bytes from `source` to every rank: decisions, names, JSON.
  std::string broadcast_bytes(std::string bytes, int source);

  // Every rank's bytes, in rank order, at every rank.
  std::vector<std::string> all_gather_bytes(const std::string& bytes);

  // The group of `ranks` (of this group), numbered in that order; null at ranks that are not in it. Every rank of this
  // group must call it, in the same order as the others. Its ranks share memory where all of them are on one host.
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
  uint64_t sequence_ = 0;  // of the next collective
  uint64_t messages_ = 0;  // sends and receives, which not all ranks take part in
  uint64_t works_ = 0;     // of rank_0_first
  int subgroups_ = 0;
  std::shared_ptr<double> seconds_inside_ = std::make_shared<double>(0);  // works continue to count
};

}  // namespace stretto
