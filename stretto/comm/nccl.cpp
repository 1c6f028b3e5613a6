#define USE_C10D_NCCL
#include <nccl.h>

#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "stretto/base/error.h"
#include "stretto/comm/backends.h"

namespace stretto::comm {
namespace {

// c10d's options contain NCCL's, which grow with its minor versions: with headers of another one, this file
// and libtorch would disagree on where their fields are.
void require_headers_of_libtorch() {
  const uint64_t version = torch::cuda::nccl::version();  // 16 bits per part
  const uint64_t major = version >> 32, minor = version >> 16 & 0xffff;
  if (major == NCCL_MAJOR && minor == NCCL_MINOR) return;
  throw DistributedError(
      "stretto was built with the headers of NCCL {}.{}, but libtorch has NCCL {}.{}: build stretto with the nccl.h of that version",
      NCCL_MAJOR, NCCL_MINOR, major, minor);
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options) {
  require_headers_of_libtorch();
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.deadline;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, nccl);
}

}  // namespace stretto::comm
