#include "stretto/tensor/file_memory.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/strings.h"
#include "stretto/base/temporary_name.h"

namespace stretto {
namespace {

// Opens a file without a name or, if the file system does not support that, removes its name at once.
int open_unnamed(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  const std::filesystem::path name = temporary_name(folder / "memory");
  const int named = ::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

// Returns whether the file has `bytes` on the disk now; the reason is in errno. A signal, such as a request
// to save, may interrupt the system.
bool reserve(const Fd& fd, const std::filesystem::path& folder, size_t bytes) {
  const auto attempt = [&](size_t) -> int64_t {
    errno = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
    return errno == 0 ? 0 : -1;
  };
  while (file_faults::call("fallocate", folder, 0, attempt) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

[[noreturn]] void fail(const std::filesystem::path& folder, size_t bytes, int error) {
  throw IoError("{}: cannot make a file of {} there: {}", folder.string(),
                human_bytes(static_cast<double>(bytes)), std::strerror(error));
}

}  // namespace

Tensor file_memory(const std::filesystem::path& folder, int64_t elements, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  if (bytes == 0) return at::empty({0}, dtype);
  const Fd fd(
      static_cast<int>(file_faults::call("open", folder, 0, [&](size_t) { return open_unnamed(folder); })));
  if (fd.get() < 0) fail(folder, bytes, errno);
  if (!reserve(fd, folder, bytes)) fail(folder, bytes, errno);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) fail(folder, bytes, errno);
  return at::from_blob(
      memory, {elements}, [bytes](void* start) { ::munmap(start, bytes); }, at::TensorOptions(dtype));
}

Allocator file_allocator(const std::filesystem::path& folder) {
  return [folder](int64_t elements, at::ScalarType dtype, at::Device device) {
    if (!device.is_cpu()) throw Error("memory in files supports CPU tensors only");
    return file_memory(folder, elements, dtype);
  };
}

void read_ahead(const Tensor& part) {
  const Pages pages = whole_pages(part);
  if (pages.bytes > 0) ::madvise(pages.begin, pages.bytes, MADV_WILLNEED);
}

void leave_to_file(const Tensor& part) {
  const Pages pages = whole_pages(part);
  if (pages.bytes > 0) ::madvise(pages.begin, pages.bytes, MADV_DONTNEED);
}

}  // namespace stretto
