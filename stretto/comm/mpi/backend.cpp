#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "stretto/comm/mpi/communicator.h"
#include "stretto/comm/mpi/types.h"
#include "stretto/comm/mpi_plugin.h"
#include "stretto/comm/work_thread.h"

namespace stretto::mpi {
namespace {

using at::Tensor;
using WorkPtr = comm::WorkThread::WorkPtr;

// A message, which is completed by the thread that waits for it.
class MessageWork : public c10d::Work {
 public:
  MessageWork(std::shared_ptr<Communicator> communicator, Tensor tensor, MPI_Request request)
      : communicator_(std::move(communicator)), tensor_(std::move(tensor)), request_(request) {}
  ~MessageWork() override {
    // The tensor is leaked on purpose: MPI may still read or write its memory.
    if (request_ != MPI_REQUEST_NULL && !isCompleted()) std::ignore = new (std::nothrow) Tensor(tensor_);
  }
  bool isCompleted() override {
    int done = request_ == MPI_REQUEST_NULL ? 1 : 0;
    if (done == 0) MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    if (done != 0) request_ = MPI_REQUEST_NULL;
    return done != 0;
  }
  bool wait(std::chrono::milliseconds) override {
    const std::atomic<bool> never = false;
    communicator_->finish(request_, never);
    request_ = MPI_REQUEST_NULL;
    return true;
  }

 private:
  const std::shared_ptr<Communicator> communicator_;
  const Tensor tensor_;
  MPI_Request request_;
};

// Runs the collectives of a group one after the other on a separate thread.
class Mpi : public c10d::Backend {
 public:
  Mpi(c10d::Store& store, int rank, int size, std::chrono::milliseconds deadline)
      : c10d::Backend(rank, size),
        communicator_(std::make_shared<Communicator>(store, rank, size, deadline)),
        thread_(
            {.error = [](const std::string& why) { return std::make_exception_ptr(std::runtime_error(why)); },
             .abort = [this] { closing_ = true; },
             .failed = leak}) {}

  const std::string getBackendName() const override { return "mpi"; }

  WorkPtr allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const Tensor tensor = only_one(tensors);
    return start({tensor}, [this, tensor, op = operation(options.reduceOp)] {
      const Tensor sum = widened(tensor);
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, sum.data_ptr(), count_of(sum.numel()),
                           number_type(sum.scalar_type()), op, comm(), &request),
            "MPI_Iallreduce");
      finish(request, {sum});
      if (is_narrow(tensor)) Tensor(tensor).copy_(sum);
    });
  }
  WorkPtr reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) override {
    const Tensor tensor = only_one(tensors);
    const int root = static_cast<int>(options.rootRank);
    return start({tensor}, [this, tensor, root, op = operation(options.reduceOp)] {
      const Tensor sum = widened(tensor);
      const bool is_root = root == getRank();
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ireduce(is_root ? MPI_IN_PLACE : sum.data_ptr(), is_root ? sum.data_ptr() : nullptr,
                        count_of(sum.numel()), number_type(sum.scalar_type()), op, root, comm(), &request),
            "MPI_Ireduce");
      finish(request, {sum});
      if (is_root && is_narrow(tensor)) Tensor(tensor).copy_(sum);
    });
  }
  WorkPtr broadcast(std::vector<Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    const Tensor tensor = only_one(tensors);
    return start({tensor}, [this, tensor, root = static_cast<int>(options.rootRank)] {
      MPI_Request request = MPI_REQUEST_NULL;
      check(
          MPI_Ibcast(tensor.data_ptr(), count_of(tensor.numel()), byte_type(tensor), root, comm(), &request),
          "MPI_Ibcast");
      finish(request);
    });
  }
  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions&) override {
    return start({output, input}, [this, output, input] {
      const int count = count_of(input.numel());
      const auto* own = static_cast<std::byte*>(output.data_ptr()) +
                        // in place if `input` is this rank's part of `output`
                        static_cast<size_t>(getRank()) * input.nbytes();
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallgather(input.const_data_ptr() == own ? MPI_IN_PLACE : input.const_data_ptr(), count,
                           byte_type(input), output.data_ptr(), count, byte_type(input), comm(), &request),
            "MPI_Iallgather");
      finish(request);
    });
  }
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return start({output, input}, [this, output, input, op = operation(options.reduceOp)] {
      const bool narrow = is_narrow(input);
      const Tensor terms = narrow ? widened(input) : input.clone();  // `output` may be a part of `input`
      const Tensor sum = narrow ? at::empty(output.sizes(), terms.options()) : output;
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ireduce_scatter_block(terms.const_data_ptr(), sum.data_ptr(), count_of(sum.numel()),
                                      number_type(sum.scalar_type()), op, comm(), &request),
            "MPI_Ireduce_scatter_block");
      finish(request, {terms, sum});
      if (narrow) Tensor(output).copy_(sum);
    });
  }
  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions&) override {
    if (!output_sizes.empty() || !input_sizes.empty()) fail("all_to_all supports equal pieces only");
    return start({output, input}, [this, output, input] {
      const int count = count_of(input.numel() / getSize());
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ialltoall(input.const_data_ptr(), count, byte_type(input), output.data_ptr(), count,
                          byte_type(input), comm(), &request),
            "MPI_Ialltoall");
      finish(request);
    });
  }
  WorkPtr barrier(const c10d::BarrierOptions&) override {
    return start({}, [this] {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ibarrier(comm(), &request), "MPI_Ibarrier");
      finish(request);
    });
  }
  WorkPtr send(std::vector<Tensor>& tensors, int destination, int tag) override {
    const Tensor tensor = only_one(tensors);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(tensor.const_data_ptr(), count_of(tensor.numel()), byte_type(tensor), destination, tag,
                    comm(), &request),
          "MPI_Isend");
    return c10::make_intrusive<MessageWork>(communicator_, tensor, request);
  }
  WorkPtr recv(std::vector<Tensor>& tensors, int source, int tag) override {
    const Tensor tensor = only_one(tensors);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(tensor.data_ptr(), count_of(tensor.numel()), byte_type(tensor), source, tag, comm(),
                    &request),
          "MPI_Irecv");
    return c10::make_intrusive<MessageWork>(communicator_, tensor, request);
  }

 private:
  MPI_Comm comm() const { return communicator_->get(); }
  // `own`: tensors of the call that only MPI uses until its end.
  void finish(MPI_Request request, const std::vector<Tensor>& own = {}) const {
    try {
      communicator_->finish(request, closing_);
    } catch (...) {
      leak(own);
      throw;
    }
  }

  // Keeps the tensors of a failed call on purpose: MPI may still read or write them.
  static void leak(const std::vector<Tensor>& tensors) { new std::vector<Tensor>(tensors); }

  WorkPtr start(std::vector<Tensor> keep, std::function<void()> run) {
    return thread_.start(std::move(keep), std::move(run));
  }

  const std::shared_ptr<Communicator> communicator_;
  std::atomic<bool> closing_ = false;
  comm::WorkThread thread_;  // declared last: it must end before the members that it uses
};

}  // namespace
}  // namespace stretto::mpi

extern "C" __attribute__((visibility("default"))) const char* stretto_mpi_built_for() {
  return stretto::mpi_plugin::this_build;
}

extern "C" __attribute__((visibility("default"))) void stretto_mpi_make(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds deadline,
    c10::intrusive_ptr<c10d::Backend>& made) {
  made = c10::make_intrusive<stretto::mpi::Mpi>(*store, rank, size, deadline);
}
