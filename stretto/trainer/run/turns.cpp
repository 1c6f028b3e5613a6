#include "stretto/trainer/run/turns.h"

#include <algorithm>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

namespace stretto::trainer {

void Turns::run(const std::function<void(int64_t)>& body) {
  const at::ThreadLocalState state;
  const int kernel_threads = at::get_num_threads();
  const auto run_body = [&](int64_t own) {
    const at::ThreadLocalStateGuard guard(state);
    take(own);
    at::set_num_threads(kernel_threads);  // OpenMP's number belongs to a thread
    try {
      if (error_ == nullptr) body(own);
    } catch (const Stopped&) {
    } catch (...) {
      if (error_ == nullptr) error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ended_[static_cast<size_t>(own)] = true;
    give();
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (int64_t own = 0; own < std::ssize(ended_); ++own) threads.emplace_back(run_body, own);
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    std::fill(ended_.begin() + std::ssize(threads), ended_.end(), true);
    give();
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void Turns::pass(int64_t own) {
  {
    const std::lock_guard lock(mutex_);
    give();
  }
  take(own);
  if (error_ != nullptr) throw Stopped{};
}

void Turns::take(int64_t own) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return turn_ == own; });
}

// REQUIRES: the lock.
void Turns::give() {
  const int64_t count = std::ssize(ended_);
  for (int64_t step = 0; step < count; ++step) {
    turn_ = (turn_ + 1) % count;
    if (!ended_[static_cast<size_t>(turn_)]) break;
  }
  changed_.notify_all();
}

}  // namespace stretto::trainer
