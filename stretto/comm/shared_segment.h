#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "stretto/base/fd.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

// A file's first `bytes` as memory that is shared with whoever else maps it. The file may grow into them later.
class SharedMapping {
 public:
  // Throws IoError.
  SharedMapping(const Fd& file, size_t bytes);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* reserved_ = nullptr;  // address space that holds the mapping, aligned for huge pages
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Memory of this rank that other processes of the host can map too. It is a memfd: it lies in no folder, /dev/shm's size
// does not bound it, and it is gone with the last process that maps it, however that ended.
//
//   | fixed part | tensors ... | room to grow: addresses only, no memory |
class SharedSegment : public std::enable_shared_from_this<SharedSegment> {
 public:
  // `fixed`: bytes at the front that are the caller's. `limit`: what the segment can grow to. Throws IoError.
  static std::shared_ptr<SharedSegment> create(size_t fixed, size_t limit);

  // Another rank's, by its path() and limit(). Throws IoError.
  static std::unique_ptr<SharedMapping> open(const std::string& path, size_t limit);

  // Where another process of the same user finds it, as long as this one lives.
  std::string path() const;

  std::byte* data() const { return mapping_->data(); }
  size_t limit() const { return mapping_->size(); }

  // A zeroed 1-D tensor inside; it keeps the segment alive, and its memory goes back when it is dropped. Thread-safe.
  // Throws IoError when the limit is reached.
  Tensor allocate(int64_t elements, at::ScalarType dtype);

  // The same as bytes, which begin so far from the segment's begin. What is not given back goes with the segment.
  // Thread-safe.
  size_t take(size_t bytes);
  void give_back(size_t begin, size_t bytes);

  // How far from the segment's begin these bytes lie; nothing where they do not lie inside.
  std::optional<size_t> offset_of(const void* memory, size_t bytes) const;

 private:
  SharedSegment() = default;

  Fd file_;
  std::unique_ptr<SharedMapping> mapping_;
  std::mutex mutex_;
  size_t file_size_ = 0;
  std::map<size_t, size_t> free_;  // begin to end of each free range, none beside another
};

}  // namespace stretto
