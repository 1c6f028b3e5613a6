#include "stretto/tensor/memory.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

Tensor mapped_pages(int64_t elements, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  if (bytes == 0) return at::empty({0}, dtype);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw IoError("cannot allocate {} for the parameter arena: {}; use a smaller model or fewer ranks",
                  human_bytes(static_cast<double>(bytes)), std::strerror(errno));
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // an optimisation; failure is harmless
  return at::from_blob(
      memory, {elements}, [bytes](void* start) { ::munmap(start, bytes); }, at::TensorOptions(dtype));
}

}  // namespace

Allocator plain_memory() {
  return [](int64_t elements, at::ScalarType dtype, at::Device device) {
    if (device.is_cpu()) return mapped_pages(elements, dtype);
    return at::zeros({elements}, at::TensorOptions(dtype).device(device));
  };
}

Pages whole_pages(const Tensor& part) {
  if (!part.device().is_cpu()) return {};
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(part.const_data_ptr());
  const uintptr_t begin = (start + page - 1) / page * page, end = (start + part.nbytes()) / page * page;
  if (begin >= end) return {};
  return {reinterpret_cast<char*>(begin), end - begin};  // NOLINT(performance-no-int-to-ptr)
}

void use_small_pages(const Tensor& part) {
  const Pages pages = whole_pages(part);
  if (pages.bytes > 0) ::madvise(pages.begin, pages.bytes, MADV_NOHUGEPAGE);
}

void release_pages(const Tensor& part) {
  const Pages pages = whole_pages(part);
  // MADV_REMOVE is for shared memory; it fails with EINVAL for private memory.
  const bool released =
      pages.bytes > 0 && (::madvise(pages.begin, pages.bytes, MADV_REMOVE) == 0 ||
                          (errno == EINVAL && ::madvise(pages.begin, pages.bytes, MADV_DONTNEED) == 0));
  if (!released) {
    Tensor(part).zero_();
    return;
  }
  auto* const start = static_cast<char*>(part.mutable_data_ptr());
  char* const end = start + part.nbytes();
  std::memset(start, 0, static_cast<size_t>(pages.begin - start));
  std::memset(pages.begin + pages.bytes, 0, static_cast<size_t>(end - (pages.begin + pages.bytes)));
}

}  // namespace stretto
