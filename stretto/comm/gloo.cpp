// libtorch's wheel contains Gloo but not its headers; Debian's libgloo-dev has matching headers. This is the
// only file that includes them.
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "stretto/base/process.h"
#include "stretto/comm/backends.h"

namespace stretto::comm {

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const GroupOptions& options) {
  // Gloo sends by writev(), which raises SIGPIPE if a peer has just ended. Python ignores that signal; it
  // would end other programs without a message.
  ignore_write_signals();
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.deadline);
  gloo->devices = {c10d::ProcessGroupGloo::createDeviceForHostname(options.address)};
  gloo->threads = 2;
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, gloo);
  // If a rank left while others still connect to each other, their connections would fail.
  group->barrier()->wait();
  return group;
}

}  // namespace stretto::comm
