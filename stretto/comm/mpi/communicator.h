#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include <mpi.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace stretto::mpi {

// Throws std::runtime_error. MPI is then not finalized at the end of the process: other ranks may be stuck,
// and MPI_Finalize would wait for them.
[[noreturn]] void fail(const std::string& why);

// Throws std::runtime_error, with MPI's error message, unless `result` is MPI_SUCCESS.
void check(int result, const char* call);

// A communicator of a group's ranks, with a deadline for each wait. The first one in a process initializes
// MPI and the last one finalizes it, once per process; any thread may call it.
class Communicator {
 public:
  // The communicator of `size` ranks that mpirun has started and that share `store`. Collective.
  Communicator(c10d::Store& store, int rank, int size, std::chrono::milliseconds deadline);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm get() const { return comm_; }

  // Polls until the request is complete, since MPI progresses inside its calls only. Throws
  // std::runtime_error at the deadline, and if `closing` becomes true.
  void finish(MPI_Request request, const std::atomic<bool>& closing) const;

 private:
  std::chrono::milliseconds deadline_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace stretto::mpi
