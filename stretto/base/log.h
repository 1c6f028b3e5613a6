#pragma once

#include <filesystem>
#include <string_view>

#include <fmt/format.h>

namespace stretto::log {

// The one logger of the process: lines to stderr, and to the rank's log file when one is open. Thread-safe.
enum class Level { info, warning, error };

// `prints_info`: this rank's info lines go to its stderr; by default rank 0's alone do. Warnings and errors always do,
// behind "stretto: error: " and the like, other ranks' behind "[rank n] " as well.
void set_rank(int rank, bool prints_info);
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
