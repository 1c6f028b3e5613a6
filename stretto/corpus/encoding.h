#pragma once

#include <string>
#include <string_view>

#include "stretto/base/option_names.h"

namespace stretto::corpus {

// How the bytes of a data file are read as text.
enum class Encoding {
  utf8,          // anything else is refused
  utf8_replace,  // each maximal invalid subpart becomes U+FFFD
  latin1,        // ISO 8859-1: each byte is a character
};

// "utf-8", "utf-8-replace" or "latin-1". Throws ConfigError for another name. `names`: here and below, of "encoding".
Encoding parse_encoding(std::string_view name, const OptionNames& names = {});

// `content` as UTF-8 without a byte order mark: itself, or `buffer` where it had to be converted. `name` is the file.
// Throws DataError by file and line for what is not UTF-8, for UTF-16, and for binary files (those with NUL bytes).
std::string_view decode_text(std::string_view content, Encoding encoding, const std::string& name,
                             std::string& buffer, const OptionNames& names = {});

// The same for files that are always UTF-8.
std::string_view utf8_text(std::string_view content, const std::string& name);

}  // namespace stretto::corpus
