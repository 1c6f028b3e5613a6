#pragma once

#include <cstddef>
#include <functional>

namespace stretto {

// Calls run(begin, end) for parts of [0, count) on up to `threads` threads (0: as many as processors that
// this process may use), including the calling one. Parts after one that throws are skipped. Rethrows the
// exception of the part with the lowest `begin`.
void run_in_parts(size_t count, int threads, const std::function<void(size_t begin, size_t end)>& run);

}  // namespace stretto
