#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include <fmt/format.h>

namespace stretto::log {

// The logger of the process: writes lines to stderr, and to the rank's log file if one is open. Thread-safe.
// The functions below do not throw if output cannot be written (closed pipe, lost terminal, full disk): the
// lines are dropped. Control characters in lines are escaped, as in \x1b.
enum class Level { info, warning, error };

// `prints_info`: whether this rank's info lines are written to stderr. Warnings and errors always are, with
// the prefix "stretto: warning: " or "stretto: error: ", and "[rank n] " on ranks other than 0.
void set_rank(int rank, bool prints_info);

// Appends to the file, after a line that separates runs. Throws IoError if it cannot be opened.
void open_file(const std::filesystem::path& path);

// Sends lines, without newline, to `output` instead of stderr; an empty function restores stderr. `output`
// must not call the logger.
using Output = std::function<void(std::string_view line)>;
void set_output(Output output);

// Writes buffered lines out.
void flush();
// Logs `line`, without newline, at this level.
void write(Level level, std::string_view line);

// Shows `line` on the terminal (stderr) in place of the last live line. The next logged line replaces
// it.
void live(std::string_view line);
// Ends the live line, if there is one, with a newline.
void end_live();

// Writes a line of a program's output to stdout.
void print(std::string_view line);

// Formats a line with fmt and logs it.
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
// Like info(), for a warning.
template <class... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warning, fmt::format(text, std::forward<Args>(args)...));
}
// Like info(), for an error.
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace stretto::log
