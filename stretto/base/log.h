#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

namespace stretto::log {

// The one logger of the process. Lines go to the terminal (stderr) on rank 0 only, and to the rank's log file when one
// is open; warnings and errors of other ranks reach the terminal through the launcher. Thread-safe.
enum class Level { info, warning, error };

void set_rank(int rank);
void set_terminal(bool enabled);
void open_file(const std::filesystem::path& path);
void flush();
void write(Level level, std::string_view line);

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
