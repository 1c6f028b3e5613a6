#define USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "stretto/comm/backends.h"

namespace stretto::comm {

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options) {
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.deadline;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, nccl);
}

}  // namespace stretto::comm
