#pragma once

#include <string>
#include <string_view>

#include "stretto/base/option_names.h"

namespace stretto::corpus {

// The encoding of a data file.
enum class Encoding {
  utf8,          // invalid UTF-8 is an error
  utf8_replace,  // each maximal invalid subpart becomes U+FFFD
  latin1,        // ISO 8859-1: each byte is a character
};

// Parses "utf-8", "utf-8-replace" or "latin-1". Throws ConfigError for any other name. `names`: here and
// below, the name of the option "encoding" in messages.
Encoding parse_encoding(std::string_view name, const OptionNames& names = {});

// Returns `content` as UTF-8 without a byte order mark: a view of `content`, or of `buffer` if it had to be
// converted. `name` is the file. Throws DataError, with file and line, for invalid UTF-8, for UTF-16, and for
// binary files (with NUL bytes).
std::string_view decode_text(std::string_view content, Encoding encoding, const std::string& name,
                             std::string& buffer, const OptionNames& names = {});

// Like decode_text, for files that are always UTF-8.
std::string_view utf8_text(std::string_view content, const std::string& name);

}  // namespace stretto::corpus
