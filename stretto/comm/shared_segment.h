#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

#include "stretto/base/fd.h"
#include "stretto/tensor/tensor.h"

namespace stretto::comm {

// The first `bytes` of a file as memory that is shared with every process that maps it.
class SharedMapping {
 public:
  // REQUIRES: the file has that size and keeps it. Throws IoError.
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

// Memory of this rank that other processes of the host can map too. It is a memfd: it has no path, /dev/shm's
// size does not limit it, and the kernel frees it with the last process that maps it, however that ended. Its
// size is sealed: no process can truncate pages that another rank is about to read. Pages that were never
// written take no memory.
//
//   | fixed part | tensors ... | not used: addresses only |
class SharedSegment : public std::enable_shared_from_this<SharedSegment> {
 public:
  // `fixed`: bytes at the front that are the caller's. `limit`: its size (RLIMIT_FSIZE may make it smaller).
  // Throws IoError.
  static std::shared_ptr<SharedSegment> create(size_t fixed, size_t limit);

  // Maps the segment of another rank, which is file descriptor `fd` (see fd()) of `process`. Neither number
  // is trusted: only a sealed segment of a process of this user, `fixed` to `limit` bytes long, is mapped,
  // and no other file is even opened. Throws IoError.
  static std::unique_ptr<SharedMapping> open(pid_t process, int fd, size_t fixed, size_t limit);

  // Valid in other processes of this user as /proc/PID/fd/FD, for the lifetime of this process.
  int fd() const { return file_.get(); }

  std::byte* data() const { return mapping_->data(); }
  size_t limit() const { return mapping_->size(); }

  // Allocates a zeroed 1-D tensor in the segment, which it keeps alive; its destruction frees the memory.
  // Thread-safe. Throws IoError when the limit is reached.
  Tensor allocate(int64_t elements, at::ScalarType dtype);

  // Like allocate(), for tensors of short life: not zeroed, and their memory is kept for later ones of about
  // the same size. At most as much is kept as such tensors use.
  Tensor allocate_scratch(int64_t elements, at::ScalarType dtype);

  // Allocates bytes and returns their offset in the segment. Thread-safe.
  size_t take(size_t bytes);
  void give_back(size_t begin, size_t bytes);

  // The offset of these bytes in the segment; nullopt if they lie outside.
  std::optional<size_t> offset_of(const void* memory, size_t bytes) const;

 private:
  SharedSegment() = default;
  size_t take_scratch(size_t bytes);
  void keep_scratch(size_t begin, size_t bytes);

  Fd file_;
  std::unique_ptr<SharedMapping> mapping_;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;               // begin to end of each free range; adjacent ranges are merged
  std::multimap<size_t, size_t> kept_scratch_;  // by size: where it begins
  size_t kept_bytes_ = 0, scratch_bytes_ = 0;   // of kept_scratch_, and in use
};

}  // namespace stretto::comm
