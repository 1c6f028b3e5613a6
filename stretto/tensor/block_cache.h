#pragma once

#include <cstddef>

namespace stretto {

// Installs a caching allocator for large CPU tensors. Every training step allocates the same few sizes;
// without the cache, the C library returns such blocks to the kernel each time, which then clears their pages
// again: about 10 % of a step. Blocks of several MiB use huge pages if available.
//
// The sum of cached and used memory is limited to 1.25 times the peak of used memory; the block unused for
// longest is released first. Affects the whole process from the first call on.
//
// It also limits the number of compiled primitives that oneDNN and libtorch cache, which use additional
// memory, unless the environment does so (ONEDNN_PRIMITIVE_CACHE_CAPACITY, LRU_CACHE_CAPACITY). REQUIRES: no
// other thread of the process runs yet.
void reuse_tensor_memory();

// Releases the memory that this cache and the C library have cached, and resets the peak. Call it after a
// setup phase that needed other sizes. Thread-safe.
void trim_tensor_memory();

// Bytes of large blocks that tensors use, and that are cached.
struct TensorMemory {
  size_t in_use = 0;
  size_t kept = 0;
};
TensorMemory tensor_memory();

}  // namespace stretto
