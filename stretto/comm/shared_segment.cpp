#include "stretto/comm/shared_segment.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::comm {
namespace {

constexpr size_t page = 4096, huge_page = size_t{2} << 20;

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::string_view segment_name = "/memfd:stretto (deleted)";  // as /proc shows it

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// The size of memory for `bytes` that are allocated again and again: one of few sizes.
size_t scratch_size(size_t bytes) { return round_up(bytes, std::max(page, std::bit_floor(bytes) / 8)); }

size_t largest_file() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

std::string link_target(const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return {target.data(), static_cast<size_t>(std::max<ssize_t>(0, length))};
}

// Throws IoError unless `path`, of which `file` is open with O_PATH, can be a segment of a process of this
// user.
void require_own_segment(const std::string& path, pid_t process, const Fd& file) {
  struct stat owner = {}, found = {};
  if (::stat(fmt::format("/proc/{}", process).c_str(), &owner) != 0 || ::fstat(file.get(), &found) != 0)
    throw IoError("{}: {}", path, std::strerror(errno));
  if (owner.st_uid != ::geteuid() || found.st_uid != ::geteuid())
    throw IoError("{}: belongs to another user", path);
  if (!S_ISREG(found.st_mode) || link_target(fmt::format("/proc/self/fd/{}", file.get())) != segment_name)
    throw IoError("{}: is not a rank's shared memory", path);
}

}  // namespace

SharedMapping::SharedMapping(const Fd& file, size_t bytes) : size_(bytes) {
  const auto refuse = [bytes](const char* what) -> IoError {
    return IoError("cannot {} {} of shared memory: {}", what, human_bytes(static_cast<double>(bytes)),
                   std::strerror(errno));
  };
  void* reserved =
      ::mmap(nullptr, size_ + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) throw refuse("reserve addresses for");
  reserved_ = static_cast<std::byte*>(reserved);
  data_ = reserved_ + (huge_page - reinterpret_cast<uintptr_t>(reserved_) % huge_page);
  if (::mmap(data_, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file.get(), 0) ==
      MAP_FAILED) {
    const IoError error = refuse("map");
    ::munmap(reserved_, size_ + huge_page);
    throw error;
  }
  ::madvise(data_, size_, MADV_HUGEPAGE);  // an optimisation, which the kernel may refuse
  ::madvise(data_, size_, MADV_DONTDUMP);  // one rank's core dump need not hold all ranks' memory
}

SharedMapping::~SharedMapping() { ::munmap(reserved_, size_ + huge_page); }

std::shared_ptr<SharedSegment> SharedSegment::create(size_t fixed, size_t limit) {
  const std::shared_ptr<SharedSegment> segment(new SharedSegment);
  segment->file_ = Fd(::memfd_create("stretto", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  limit = std::min(limit, largest_file()) / huge_page * huge_page;
  if (limit < fixed) {
    throw IoError(
        "shared memory may be {} long, and {} are needed; raise the limit on file sizes (ulimit -f)",
        human_bytes(static_cast<double>(limit)), human_bytes(static_cast<double>(fixed)));
  }
  if (!segment->file_ || ::ftruncate(segment->file_.get(), static_cast<off_t>(limit)) != 0 ||
      ::fcntl(segment->file_.get(), F_ADD_SEALS, seals) != 0) {
    throw IoError("cannot make shared memory: {}", std::strerror(errno));
  }
  segment->mapping_ = std::make_unique<SharedMapping>(segment->file_, limit);
  segment->free_[round_up(fixed, page)] = limit;
  return segment;
}

std::unique_ptr<SharedMapping> SharedSegment::open(pid_t process, int fd, size_t fixed, size_t limit) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, fd);
  // O_PATH opens a device or a FIFO without side effects.
  const Fd named(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!named) throw IoError("{}: {}", path, std::strerror(errno));
  require_own_segment(path, process, named);
  const Fd file(::open(fmt::format("/proc/self/fd/{}", named.get()).c_str(), O_RDWR | O_CLOEXEC));
  struct stat found = {};
  if (!file || ::fstat(file.get(), &found) != 0) throw IoError("{}: {}", path, std::strerror(errno));
  const auto size = static_cast<size_t>(found.st_size);
  if (::fcntl(file.get(), F_GET_SEALS) != seals || size < fixed || size > limit || size % huge_page != 0)
    throw IoError("{}: is not a rank's shared memory", path);
  return std::make_unique<SharedMapping>(file, size);
}

Tensor SharedSegment::allocate(int64_t elements, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  if (bytes == 0) return at::empty({0}, dtype);
  const size_t begin = take(bytes);
  const auto free = [segment = shared_from_this(), begin, bytes](void*) { segment->give_back(begin, bytes); };
  return at::from_blob(data() + begin, {elements}, free, at::TensorOptions(dtype));
}

Tensor SharedSegment::allocate_scratch(int64_t elements, at::ScalarType dtype) {
  const size_t bytes = scratch_size(static_cast<size_t>(elements) * c10::elementSize(dtype));
  if (bytes == 0) return at::empty({0}, dtype);
  const size_t begin = take_scratch(bytes);
  const auto keep = [segment = shared_from_this(), begin, bytes](void*) {
    segment->keep_scratch(begin, bytes);
  };
  return at::from_blob(data() + begin, {elements}, keep, at::TensorOptions(dtype));
}

size_t SharedSegment::take_scratch(size_t bytes) {
  std::multimap<size_t, size_t> unused;
  {
    const std::lock_guard lock(mutex_);
    scratch_bytes_ += bytes;
    if (const auto kept = kept_scratch_.find(bytes); kept != kept_scratch_.end()) {
      const size_t begin = kept->second;
      kept_scratch_.erase(kept);
      kept_bytes_ -= bytes;
      return begin;
    }
    if (kept_bytes_ >= scratch_bytes_) {  // of sizes that are not needed now
      unused.swap(kept_scratch_);
      kept_bytes_ = 0;
    }
  }
  for (const auto& [size, begin] : unused) give_back(begin, size);
  return take(bytes);
}

void SharedSegment::keep_scratch(size_t begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  kept_scratch_.emplace(bytes, begin);
  kept_bytes_ += bytes;
  scratch_bytes_ -= bytes;
}

std::optional<size_t> SharedSegment::offset_of(const void* memory, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(memory), start = reinterpret_cast<uintptr_t>(data());
  if (address < start || address - start > limit() || bytes > limit() - (address - start))
    return std::nullopt;
  return address - start;
}

// The first free range that is large enough. Large ones begin on a huge page.
size_t SharedSegment::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = round_up(bytes, page);
  const size_t alignment = bytes >= huge_page ? huge_page : page;
  for (const auto& range : free_) {
    const auto [from, end] = range;  // by value: it is about to be erased
    const size_t begin = round_up(from, alignment);
    if (begin > end || bytes > end - begin) continue;
    free_.erase(from);
    if (begin > from) free_[from] = begin;
    if (begin + bytes < end) free_[begin + bytes] = end;
    return begin;
  }
  throw IoError(
      "cannot get {} of shared memory: the limit is {} per rank of this host, its memory; start fewer ranks per host",
      human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(limit())));
}

void SharedSegment::give_back(size_t begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = round_up(bytes, page);
  // Punches a hole, so that the next tensor at these addresses is zeroed.
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(bytes));
  size_t end = begin + bytes;
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == begin) {
    std::prev(next)->second = end;
  } else {
    free_[begin] = end;
  }
}

}  // namespace stretto::comm
