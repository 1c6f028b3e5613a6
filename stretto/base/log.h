#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include <fmt/format.h>

namespace stretto::log {

// The one logger of the process: lines to stderr, and to the rank's log file when one is open. Thread-safe. No function
// below throws because output cannot be written: a closed pipe, a lost terminal or a full disk cost lines, and nothing
// else. Control characters in a line, which data may bring along, are written as \x1b and the like.
enum class Level { info, warning, error };

// `prints_info`: this rank's info lines go to its stderr; by default only rank 0's do. Warnings and errors always do,
// behind "stretto: error: " and the like, those of other ranks behind "[rank n] " as well.
void set_rank(int rank, bool prints_info);

// Appends to the file, behind a line that separates runs. Throws IoError where it cannot be opened.
void open_file(const std::filesystem::path& path);

// Sends the lines to `output`, without their newline, in place of stderr; an empty function: to stderr again. `output`
// must not call the logger.
using Output = std::function<void(std::string_view line)>;
void set_output(Output output);

void flush();
void write(Level level, std::string_view line);

// Shows `line` in place of the last live line, on a terminal that stderr leads to. The next line that is logged
// replaces it.
void live(std::string_view line);
// Leaves the live line, if there is one, as it is.
void end_live();

// A line of a program's own output: to stdout.
void print(std::string_view line);

template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace stretto::log
