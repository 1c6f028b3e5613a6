#include "stretto/lite/random.h"

#include <array>
#include <cstring>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include "stretto/base/hash.h"

namespace stretto::lite {

std::string random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

void set_random_state(const std::string& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  at::Tensor bytes = at::empty({static_cast<int64_t>(state.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
  const std::lock_guard lock(generator.mutex());
  generator.set_state(bytes);
}

void separate_random_numbers(int rank) {
  if (rank == 0) return;
  at::manual_seed(hash64(std::array<uint64_t, 2>{hash64(random_state()), static_cast<uint64_t>(rank)}));
}

}  // namespace stretto::lite
