#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace stretto {

// Base of every error that stretto throws. The message is a whole sentence for the user: where, what was found, what
// was expected, what to do. `exit_code` is what a program ends with when nothing catches the error.
class Error : public std::runtime_error {
 public:
  template <class... Args>
  explicit Error(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}
  virtual int exit_code() const { return 1; }
};

// A command line or a configuration that cannot be honoured. Ends with 2, as shells expect of usage errors.
struct ConfigError : Error {
  using Error::Error;
  int exit_code() const override { return 2; }
};

// Foreign input (data, weights, tokenizers) that is malformed; the message names file and line.
struct DataError : Error {
  using Error::Error;
};

// The operating system refused a file, socket or process operation.
struct IoError : Error {
  using Error::Error;
};

// Tensors whose shapes do not fit; the message holds both shapes.
struct ShapeError : Error {
  using Error::Error;
};

// A peer rank, the store or a collective failed.
struct DistributedError : Error {
  using Error::Error;
};

}  // namespace stretto
