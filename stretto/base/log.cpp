#include "stretto/base/log.h"

#include <cstdio>
#include <memory>
#include <mutex>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace stretto::log {
namespace {

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
  auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string(), /*truncate=*/false);
  auto logger = std::make_shared<spdlog::logger>("stretto", sink);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  logger->flush_on(spdlog::level::info);
  const std::lock_guard lock(state().mutex);
  state().file = std::move(logger);
}

void flush() {
  const std::lock_guard lock(state().mutex);
  if (state().file) state().file->flush();
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
