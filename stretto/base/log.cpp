#include "stretto/base/log.h"

#include <cstdio>
#include <memory>
#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "stretto/base/files.h"

namespace stretto::log {
namespace {

// spdlog's lines, written as all files of stretto are. What cannot be written spdlog reports on stderr, once
// a second.
class FileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(const std::filesystem::path& path) : file_(path) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    file_.write({line.data(), line.size()});
  }
  void flush_() override {}

  AppendFile file_;
};

struct State {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> file;
  int rank = 0;
  bool prints_info = true;
};

State& state() {
  static State instance;
  return instance;
}

spdlog::level::level_enum spdlog_level(Level level) {
  if (level == Level::error) return spdlog::level::err;
  return level == Level::warning ? spdlog::level::warn : spdlog::level::info;
}

}  // namespace

void set_rank(int rank, bool prints_info) {
  const std::lock_guard lock(state().mutex);
  state().rank = rank;
  state().prints_info = prints_info;
}

void open_file(const std::filesystem::path& path) {
  auto logger = std::make_shared<spdlog::logger>("stretto", std::make_shared<FileSink>(path));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  const std::lock_guard lock(state().mutex);
  state().file = std::move(logger);
}

void flush() {
  const std::lock_guard lock(state().mutex);
  std::fflush(nullptr);
}

void write(Level level, std::string_view line) {
  const std::lock_guard lock(state().mutex);
  if (state().file) state().file->log(spdlog_level(level), line);
  if (level == Level::info && !state().prints_info) return;
  // A live progress line may be standing on the terminal: clear it first.
  const char* clear = ::isatty(STDERR_FILENO) ? "\r\033[K" : "";
  const char* mark = level == Level::error     ? "stretto: error: "
                     : level == Level::warning ? "stretto: warning: "
                                               : "";
  const std::string rank =
      state().rank == 0 || level == Level::info ? "" : fmt::format("[rank {}] ", state().rank);
  fmt::print(stderr, "{}{}{}{}\n", clear, rank, mark, line);
}

}  // namespace stretto::log
