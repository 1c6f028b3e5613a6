#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace stretto::cli {

// Logs "<what> (<bytes done> of <total> done)" every `period` until it is destroyed; nothing if it lives shorter. Thread-safe.
class ByteProgress {
 public:
  ByteProgress(std::string what, int64_t total, std::chrono::milliseconds period = std::chrono::seconds(2));

  void add(int64_t bytes);
  void describe(std::string what);

 private:
  void print(const std::stop_token& stop, std::chrono::milliseconds period);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string what_;
  int64_t done_ = 0;
  const int64_t total_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace stretto::cli
