#pragma once

#include <filesystem>
#include <string>

#include "stretto/base/line_reader.h"
#include "stretto/serve/pipeline_input.h"

namespace stretto::serve {

// text: one input per line. jsonl: one JSON value per line; blank lines do not count. json: one JSON value.
enum class InputFormat { text, json, jsonl };

// The format by the extension of `path`; text for standard input ("-") and unknown extensions. Throws
// ConfigError for tables (.csv, .tsv).
InputFormat format_of(const std::filesystem::path& path, const OptionNames& names = {});

// Calls `use` with each input, in order, as soon as it is read. Throws DataError with file and line for a
// malformed input; json is checked whole before the first call.
void read_inputs(LineReader& source, InputFormat format, const InputParser& parser, const UseInput& use);

}  // namespace stretto::serve
