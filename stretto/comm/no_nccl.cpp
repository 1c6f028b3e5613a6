#include "stretto/base/error.h"
#include "stretto/comm/backends.h"

namespace stretto::comm {

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>&, int, int,
                                            const GroupOptions&) {
  throw ConfigError(
      "this build of stretto has no NCCL; build it with a CUDA libtorch (STRETTO_TORCH), or compute on the CPU");
}

}  // namespace stretto::comm
