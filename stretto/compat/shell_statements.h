#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::compat {

// A simple command of a shell script, or the part of a compound one up to ";" or the end of its line: "if [ 1
// ]", "then", "A=1".
struct ShellStatement {
  int64_t line = 0;
  std::vector<std::string> words;  // as they are written, with quotes and variables; without redirections
  std::string then;                // what joins it with the next one: ";", "&&", "||", "|" or "&"
};

// Divides a script of bash into statements. Throws ConfigError without a file ("12: ...") for quotes and
// parentheses that are not closed.
std::vector<ShellStatement> shell_statements(std::string_view script);

// The end of what begins at `begin` of `text`: a quoted text, "$(...)", "${...}", "(...)" or `...`. The size
// of the text if it is not closed.
size_t shell_end(std::string_view text, size_t begin);

}  // namespace stretto::compat
