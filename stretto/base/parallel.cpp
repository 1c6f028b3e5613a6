#include "stretto/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace stretto {

void run_in_parts(size_t count, int threads, const std::function<void(size_t, size_t)>& run) {
  constexpr size_t parts_per_thread = 8;  // they may differ in work
  const size_t processors = std::max(1U, std::thread::hardware_concurrency());
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads) : processors;
  const size_t used = std::clamp<size_t>(wanted, 1, std::max<size_t>(count, 1));
  if (used == 1) return run(0, count);
  const size_t part = std::max<size_t>(1, count / (used * parts_per_thread));
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  size_t error_at = count;
  // Parts begin in order: when one throws, all lower ones have begun and are finished.
  const auto work = [&] {
    for (size_t begin; (begin = next.fetch_add(part)) < count;) {
      try {
        run(begin, std::min(begin + part, count));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (begin < error_at) error = std::current_exception();
        error_at = std::min(error_at, begin);
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < used; ++i) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace stretto
