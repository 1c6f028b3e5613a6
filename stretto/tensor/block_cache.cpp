#include "stretto/tensor/block_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include <malloc.h>
#include <sys/mman.h>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

constexpr size_t smallest_block = size_t{64} << 10;  // smaller requests go to the C library
// A oneDNN primitive, compiled for the shapes of one matmul, takes several 100 KiB with its description.
// oneDNN caches 1024 primitives by default, and libtorch's ideep as many descriptions per thread.
constexpr const char* onednn_primitives = "64";
constexpr const char* ideep_descriptions = "32";
constexpr size_t page = 4096;
constexpr size_t huge_page = size_t{2} << 20;

// Rounds sizes up to a multiple of a quarter of the power of two below, so that similar requests share
// blocks. Pages that are never written use no memory.
size_t rounded(size_t bytes) {
  size_t step = smallest_block / 4;
  while (step * 8 <= bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

// Maps memory; from two huge pages on it is aligned to a huge page, as transparent huge pages require. Null
// on failure.
void* map_pages(size_t bytes) {
  const size_t spare = bytes >= 2 * huge_page ? huge_page : 0;
  void* memory = ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (spare == 0) return memory;
  char* start = static_cast<char*>(memory);
  const size_t before = (huge_page - reinterpret_cast<uintptr_t>(memory) % huge_page) % huge_page;
  if (before > 0) ::munmap(start, before);
  ::munmap(start + before + bytes, spare - before);
  ::madvise(start + before, bytes, MADV_HUGEPAGE);  // an optimisation; failure is harmless
  return start + before;
}

class BlockCache : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* start = bytes < smallest_block ? c10::alloc_cpu(bytes) : take(rounded(bytes));
    return {start, start, raw_deleter(), c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  void free(void* start) {
    // Blocks are aligned to pages; other memory rarely is.
    if (reinterpret_cast<uintptr_t>(start) % page != 0 || !keep(start)) c10::free_cpu(start);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    while (kept_bytes_ > 0) release_oldest();
    most_in_use_ = in_use_;
  }

  TensorMemory sizes() const {
    const std::lock_guard lock(mutex_);
    return {in_use_, kept_bytes_};
  }

 private:
  // The smallest cached block that is large enough and less than twice as large, else a new one.
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.lower_bound(bytes);
    void* start = nullptr;
    if (found != kept_.end() && found->first < 2 * bytes) {
      bytes = found->first;
      start = found->second.start;
      kept_bytes_ -= bytes;
      kept_.erase(found);
    } else {
      // Releases the next smaller cached block if the new one can serve the same requests, so that the blocks
      // of batches with varying lengths grow to the longest instead of being mapped and released alternately.
      if (found != kept_.begin() && bytes < 2 * std::prev(found)->first) release(std::prev(found));
      start = map_new(bytes);
    }
    size_of_[start] = bytes;
    in_use_ += bytes;
    most_in_use_ = std::max(most_in_use_, in_use_);
    release_surplus();
    return start;
  }

  // Maps a new block; without free memory, after releasing all cached blocks.
  void* map_new(size_t bytes) {
    void* start = map_pages(bytes);
    if (start == nullptr) {
      while (kept_bytes_ > 0) release_oldest();
      start = map_pages(bytes);
    }
    if (start != nullptr) return start;
    throw IoError("cannot allocate {} for a tensor: {}; use smaller batches or fewer ranks",
                  human_bytes(static_cast<double>(bytes)), std::strerror(errno));
  }

  // Returns false if `start` is not a block.
  bool keep(void* start) {
    const std::lock_guard lock(mutex_);
    const auto found = size_of_.find(start);
    if (found == size_of_.end()) return false;
    const size_t bytes = found->second;
    size_of_.erase(found);
    in_use_ -= bytes;
    kept_bytes_ += bytes;
    kept_.emplace(bytes, Kept{start, ++frees_});
    release_surplus();
    return true;
  }

  void release_surplus() {
    while (kept_bytes_ > 0 && in_use_ + kept_bytes_ > most_in_use_ + most_in_use_ / 4) release_oldest();
  }

  void release_oldest() {
    release(std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
      return a.second.freed_at < b.second.freed_at;
    }));
  }

  struct Kept {
    void* start;
    uint64_t freed_at;
  };

  void release(std::multimap<size_t, Kept>::iterator block) {
    ::munmap(block->second.start, block->first);
    kept_bytes_ -= block->first;
    kept_.erase(block);
  }

  mutable std::mutex mutex_;
  std::multimap<size_t, Kept> kept_;           // by size
  std::unordered_map<void*, size_t> size_of_;  // of blocks in use
  uint64_t frees_ = 0;
  size_t in_use_ = 0, most_in_use_ = 0, kept_bytes_ = 0;
};

// Never destroyed: tensors with static lifetime may be freed after all other objects.
BlockCache& block_cache() {
  static auto* cache = new BlockCache;
  return *cache;
}

c10::DeleterFnPtr BlockCache::raw_deleter() const {
  return [](void* start) { block_cache().free(start); };
}

}  // namespace

void reuse_tensor_memory() {
  c10::SetCPUAllocator(&block_cache(), /*priority=*/1);
  // oneDNN has two names for its setting; the older one is used only if the newer one is not set.
  if (std::getenv("DNNL_PRIMITIVE_CACHE_CAPACITY") == nullptr)
    ::setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", onednn_primitives, /*overwrite=*/0);
  ::setenv("LRU_CACHE_CAPACITY", ideep_descriptions, /*overwrite=*/0);
}

void trim_tensor_memory() {
  block_cache().trim();
  // If another allocator replaces malloc, the first call initialises glibc's heap, which is not thread-safe.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  ::malloc_trim(0);
}

TensorMemory tensor_memory() { return block_cache().sizes(); }

}  // namespace stretto
