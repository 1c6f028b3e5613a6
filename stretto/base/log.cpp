#include "stretto/base/log.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>

#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "stretto/base/held_file.h"
#include "stretto/base/log_setup.h"
#include "stretto/base/stream_writer.h"

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

// A spdlog sink that writes through base/files.
class FileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FileSink(const std::filesystem::path& path, bool hold) : file_(path, hold) {}

  void release() {
    const std::lock_guard lock(mutex_);
    file_.release();
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    file_.write({line.data(), line.size()});
  }
  void flush_() override {}

  HeldFile file_;
};

// Escapes control characters, which may come from data and which terminals interpret, except newlines and tabs.
std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : ' ');
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      safe += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F in UTF-8
      safe += fmt::format("\\u00{:02x}", next);
      ++i;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

struct State {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> file;
  std::shared_ptr<FileSink> sink;        // of `file`
  std::unique_ptr<StreamWriter> writer;  // to stderr; none: it is written to directly
  bool file_failed = false;
  Output output;
  int rank = 0;
  bool prints_info = true;
  bool live = false;  // the terminal shows a live line

  // REQUIRES: the mutex is held.
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

spdlog::level::level_enum spdlog_level(Level level) {
  if (level == Level::error) return spdlog::level::err;
  return level == Level::warning ? spdlog::level::warn : spdlog::level::info;
}

void write_locked(State& to, Level level, std::string_view line) {
  if (to.file) to.file->log(spdlog_level(level), line);
  if (level == Level::info && !to.prints_info) return;
  const char* mark = level == Level::error     ? "stretto: error: "
                     : level == Level::warning ? "stretto: warning: "
                                               : "";
  const std::string rank = to.rank == 0 || level == Level::info ? "" : fmt::format("[rank {}] ", to.rank);
  to.show(fmt::format("{}{}{}", rank, mark, line));
}

void open_log(const std::filesystem::path& path, bool hold) {
  auto sink = std::make_shared<FileSink>(path, hold);
  auto logger = std::make_shared<spdlog::logger>("stretto", sink);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %v");
  logger->info("======== start of process {} ========", ::getpid());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  logger->set_error_handler([](const std::string& reason) { state().report_file_error(reason); });
  const std::lock_guard lock(state().mutex);
  state().file = std::move(logger);
  state().sink = std::move(sink);
  state().file_failed = false;
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
  if (!state().sink) return;
  try {
    state().sink->release();
  } catch (const std::exception& error) {
    state().report_file_error(error.what());
  }
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
    write_locked(state(), level, printable(line));
  } catch (...) {  // no memory for the line: it is dropped
  }
}

void live(std::string_view line) {
  const std::lock_guard lock(state().mutex);
  state().live = true;
  state().to_stderr(fmt::format("{}{}", clear_line, printable(line)));
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
