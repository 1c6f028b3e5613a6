#include "stretto/programs/stretto/byte_progress.h"

#include "stretto/base/log.h"
#include "stretto/base/strings.h"

namespace stretto::cli {

ByteProgress::ByteProgress(std::string what, int64_t total, std::chrono::milliseconds period)
    : what_(std::move(what)),
      total_(total),
      thread_([this, period](const std::stop_token& stop) { print(stop, period); }) {}

void ByteProgress::add(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_ += bytes;
}

void ByteProgress::describe(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void ByteProgress::print(const std::stop_token& stop, std::chrono::milliseconds period) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_for(lock, stop, period, [] { return false; });
    if (stop.stop_requested()) return;
    log::info("{} ({} of {} done)", what_, human_bytes(static_cast<double>(done_)),
              human_bytes(static_cast<double>(total_)));
  }
}

}  // namespace stretto::cli
