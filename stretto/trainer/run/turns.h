#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace stretto::trainer {

// Runs several functions in turns: each has its own thread, but only one of them runs at a time, until it
// calls pass() or ends. Then the next one does, and after the last one the first again.
class Turns {
 public:
  explicit Turns(int64_t count) : ended_(static_cast<size_t>(count)) {}

  // Runs body(0) ... body(count - 1) with the thread-local state of libtorch of this thread. If one throws,
  // pass() throws in the others; rethrows the first exception when all have ended.
  void run(const std::function<void(int64_t)>& body);

  // Called by body(own): lets each of the others run until it calls pass() or ends.
  void pass(int64_t own);

 private:
  struct Stopped {};  // not a std::exception, so that bodies do not catch it
  void take(int64_t own);
  void give();

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t turn_ = -1;
  std::vector<bool> ended_;
  std::exception_ptr error_;  // read and written by the one whose turn it is
};

}  // namespace stretto::trainer
