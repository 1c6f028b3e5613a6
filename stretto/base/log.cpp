#include "stretto/base/log.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "stretto/base/clock.h"
#include "stretto/base/held_file.h"
#include "stretto/base/log_setup.h"
#include "stretto/base/stream_writer.h"
#include "stretto/base/strings.h"

namespace stretto::log {
namespace {

constexpr const char* clear_line = "\r\033[K";

// Drops text that cannot be written.
void write_to(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd watched{fd, POLLOUT, 0};
      ::poll(&watched, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

const char* name_of(Level level) {
  if (level == Level::error) return "error";
  return level == Level::warning ? "warning" : "info";
}

struct State {
  std::mutex mutex;
  std::unique_ptr<HeldFile> file;        // none: no log file is open
  std::unique_ptr<StreamWriter> writer;  // of stderr; null: lines are written to it directly
  bool file_failed = false;
  Output output;
  int rank = 0;
  bool prints_info = true;
  bool live = false;  // the terminal shows a live line

  // REQUIRES for all functions: the mutex is held.
  void write_to_file(std::string_view line) {
    if (!file) return;
    try {
      file->write(fmt::format("{} {}\n", log_time(), line));
    } catch (const std::exception& error) {
      report_file_error(error.what());
    }
  }
  void show(std::string_view line) {
    if (output) return output(line);
    const bool clear = live || ::isatty(STDERR_FILENO) == 1;
    live = false;
    to_stderr(fmt::format("{}{}\n", clear ? clear_line : "", line));
  }
  void to_stderr(std::string_view text) { writer ? writer->write(text) : write_to(STDERR_FILENO, text); }
  void report_file_error(const std::string& reason) {
    if (!std::exchange(file_failed, true)) {
      show(fmt::format("stretto: warning: lines are missing from the log file: {}", reason));
    }
  }
};

State& state() {
  static State instance;
  return instance;
}

void write_locked(State& to, Level level, std::string_view line) {
  to.write_to_file(fmt::format("{} {}", name_of(level), line));
  if (level == Level::info) {
    if (to.prints_info) to.show(line);
    return;
  }
  const std::string rank = to.rank == 0 ? "" : fmt::format("[rank {}] ", to.rank);
  to.show(fmt::format("{}stretto: {}: {}", rank, name_of(level), line));
}

void open_log(const std::filesystem::path& path, bool hold) {
  auto file = std::make_unique<HeldFile>(path, hold);
  const std::lock_guard lock(state().mutex);
  state().file = std::move(file);
  state().file_failed = false;
  state().write_to_file(fmt::format("======== start of process {} ========", ::getpid()));
}

}  // namespace

void set_rank(int rank, bool prints_info) {
  const std::lock_guard lock(state().mutex);
  state().rank = rank;
  state().prints_info = prints_info;
}

void open_file(const std::filesystem::path& path) { open_log(path, /*hold=*/false); }
void open_held_file(const std::filesystem::path& path) { open_log(path, /*hold=*/true); }

void release_file() {
  const std::lock_guard lock(state().mutex);
  if (!state().file) return;
  try {
    state().file->release();
  } catch (const std::exception& error) {
    state().report_file_error(error.what());
  }
}

void discard_held_file() {
  const std::lock_guard lock(state().mutex);
  if (state().file && state().file->is_held()) state().file.reset();
}

void buffer_stderr(bool to_launcher) {
  StreamWriter::Limits limits;
  if (to_launcher) {
    limits.capacity = size_t{64} << 20;
    limits.reader_returns = true;
  }
  const std::lock_guard lock(state().mutex);
  if (!state().writer) state().writer = std::make_unique<StreamWriter>(STDERR_FILENO, limits);
}

void set_output(Output output) {
  const std::lock_guard lock(state().mutex);
  state().output = std::move(output);
}

void flush() {
  const std::lock_guard lock(state().mutex);
  std::fflush(nullptr);
  if (state().writer) state().writer->finish();
}

void write(Level level, std::string_view line) {
  try {
    const std::lock_guard lock(state().mutex);
    write_locked(state(), level, escape_controls(line, ControlEscape::hexadecimal));
  } catch (...) {  // no memory for the line: it is dropped
  }
}

void live(std::string_view line) {
  const std::lock_guard lock(state().mutex);
  state().live = true;
  state().to_stderr(fmt::format("{}{}", clear_line, escape_controls(line, ControlEscape::hexadecimal)));
}

void end_live() {
  const std::lock_guard lock(state().mutex);
  if (std::exchange(state().live, false)) state().to_stderr("\n");
}

void print(std::string_view line) {
  const std::lock_guard lock(state().mutex);
  std::fflush(stdout);  // keeps the order with output that the program printed by other means
  write_to(STDOUT_FILENO, fmt::format("{}\n", line));
}

}  // namespace stretto::log
