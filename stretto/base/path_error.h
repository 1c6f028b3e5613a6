#pragma once

#include <filesystem>
#include <string>

#include "stretto/base/error.h"

namespace stretto {

// Nothing can be created at a path: a part of it is a file, or it may not be written to. A restart would fail
// again, so the exit code is that of a usage error.
struct PathError : IoError {
  using IoError::IoError;
  int exit_code() const override { return 2; }
};

// Throws the error of a file or folder that could not be created: PathError if the errno `reason` requires
// another path, else IoError.
[[noreturn]] void fail_to_create(int reason, const std::string& message);

// Throws PathError unless a file can be created, or replaced, at `path`, which a user chose for the result of
// a command.
void require_file_path(const std::filesystem::path& path);

}  // namespace stretto
