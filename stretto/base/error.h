#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace stretto {

// Base class of all exceptions of stretto. Messages state where, what was found, what was expected and what
// to do. `exit_code`: the exit code of a program that does not catch the error.
class Error : public std::runtime_error {
 public:
  template <class... Args>
  explicit Error(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}
  virtual int exit_code() const { return 1; }
};

// An invalid command line or configuration. The exit code is 2, as is usual for usage errors.
struct ConfigError : Error {
  using Error::Error;
  int exit_code() const override { return 2; }
};

// Malformed input (data, weights, tokenizers, checkpoints); the message names the file and, if known, the
// line.
struct DataError : Error {
  using Error::Error;
};

// A file, socket or process operation failed in the operating system.
struct IoError : Error {
  using Error::Error;
};

// Tensor shapes that do not match; the message contains both shapes.
struct ShapeError : Error {
  using Error::Error;
};

// A peer rank, the store or a collective failed.
struct DistributedError : Error {
  using Error::Error;
};

}  // namespace stretto
