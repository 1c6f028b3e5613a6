#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include <mpi.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace stretto::mpi {

// Throws std::runtime_error. MPI is then left as it is at the end of the process: other ranks may be stuck, and MPI_Finalize would
// wait for them.
[[noreturn]] void fail(const std::string& why);

// Throws std::runtime_error, with MPI's words, unless `result` is that of a call that succeeded.
void check(int result, const char* call);

// A communicator of a group's ranks, with a deadline for what waits in it. MPI runs from the first to the end of the last in a process,
// once; by calls of any thread.
class Communicator {
 public:
  // Of `size` ranks that MPI has started, which find each other in `store`. Collective.
  Communicator(c10d::Store& store, int rank, int size, std::chrono::milliseconds deadline);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm get() const { return comm_; }

  // Returns when the request is done; MPI proceeds inside of its calls only. Throws std::runtime_error at the deadline, and if `closing`
  // becomes true.
  void finish(MPI_Request request, const std::atomic<bool>& closing) const;

 private:
  std::chrono::milliseconds deadline_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace stretto::mpi
