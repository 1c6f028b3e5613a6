#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/file_faults.h"

// The system calls of files.cpp and file_writer.cpp, with the fault injection of the tests.
namespace stretto::file_calls {

[[noreturn]] inline void fail(const char* verb, const std::filesystem::path& path) {
  throw IoError("cannot {} {}: {}", verb, path.string(), std::strerror(errno));
}

// One system call that modifies `path`, subject to fault injection.
template <class Perform>
auto change(const char* name, const std::filesystem::path& path, Perform perform) {
  return file_faults::call(name, path, 0, [&](size_t) { return perform(); });
}

// A failed fsync is not retried: the kernel drops the pages that it could not write, so that a second fsync
// would succeed.
inline void sync(const Fd& file, const std::filesystem::path& path) {
  if (change("fsync", path, [&] { return ::fsync(file.get()); }) != 0) fail("fsync", path);
}

}  // namespace stretto::file_calls
