#pragma once

#include <memory>

#include "stretto/base/line_reader.h"
#include "stretto/programs/arguments/input_arguments.h"
#include "stretto/serve/input_reader.h"

namespace stretto::rank {

// The inputs of a verb: texts of the command line, lines of a file or of standard input.
class TextSource {
 public:
  // Throws IoError if the file cannot be opened, ConfigError for a file of another format. `arguments` must
  // outlive it.
  TextSource(const arguments::InputArguments& arguments, const OptionNames& names);

  // Calls `use` with each input as soon as it is read. Throws DataError with the position of an invalid
  // input.
  void read(const InputParser& parser, const UseInput& use) const;

 private:
  const arguments::InputArguments& arguments_;
  std::unique_ptr<LineReader> lines_;  // null: the texts of the command line
  serve::InputFormat format_ = serve::InputFormat::text;
};

}  // namespace stretto::rank
