#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

#include <c10/core/CPUAllocator.h>

namespace stretto::nn {

// Counts the bytes of tensors on the CPU that are made in its lifetime and still exist. These tensors must
// not outlive it.
class CountedMemory : public c10::Allocator {
 public:
  CountedMemory() { c10::SetCPUAllocator(this, priority); }
  ~CountedMemory() override { c10::SetCPUAllocator(before_, priority); }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  c10::DataPtr allocate(size_t bytes) override {
    auto* const block = new Block{before_->allocate(bytes), bytes, this};
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    most_ = std::max(most_, bytes_);
    return {block->memory.get(), block, &release, c10::kCPU};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  size_t bytes() const { return bytes_; }
  size_t most() const { return most_; }  // at one time

 private:
  static constexpr uint8_t priority = 200;
  struct Block {
    c10::DataPtr memory;
    size_t bytes;
    CountedMemory* of;
  };
  static void release(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    const std::lock_guard lock(block->of->mutex_);
    block->of->bytes_ -= block->bytes;
  }
  c10::Allocator* const before_ = c10::GetCPUAllocator();
  std::mutex mutex_;
  size_t bytes_ = 0, most_ = 0;
};

}  // namespace stretto::nn
