#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace stretto::token_corpus {

// Processes items with several threads and returns the results in the order of the items. All calls must be
// made by one thread.
template <class In, class Out>
class OrderedWork {
 public:
  // Each thread uses its own function, made by `make_worker`. With one thread, take() runs the function in
  // the caller's thread.
  using Worker = std::function<Out(In&)>;
  OrderedWork(int threads, const std::function<Worker()>& make_worker) {
    if (threads == 1) own_worker_ = make_worker();
    for (int i = 0; threads > 1 && i < threads; ++i)
      threads_.emplace_back([this, work = make_worker()](const std::stop_token& stop) { run(work, stop); });
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  void put(In item) {
    auto job = std::make_shared<Job>();
    job->item = std::move(item);
    const std::lock_guard lock(mutex_);
    waiting_.push_back(job);
    in_order_.push_back(std::move(job));
    changed_.notify_all();
  }

  size_t size() const { return in_order_.size(); }  // the number of items whose results have not been taken

  // Returns the result of the oldest of these items. Waits for it; rethrows an exception of the work.
  // REQUIRES: size() > 0.
  Out take() {
    const std::shared_ptr<Job> job = std::move(in_order_.front());
    in_order_.pop_front();
    if (own_worker_) {
      waiting_.pop_front();
      return own_worker_(job->item);
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return job->result || job->error; });
    if (job->error) std::rethrow_exception(job->error);
    return std::move(*job->result);
  }

 private:
  struct Job {
    In item;
    std::optional<Out> result;
    std::exception_ptr error;
  };

  void run(const Worker& work, const std::stop_token& stop) {
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) return;
        job = std::move(waiting_.front());
        waiting_.pop_front();
      }
      std::optional<Out> result;
      std::exception_ptr error;
      try {
        result = work(job->item);
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      job->result = std::move(result);
      job->error = error;
      changed_.notify_all();
    }
  }

  Worker own_worker_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<Job>> waiting_;   // not begun
  std::deque<std::shared_ptr<Job>> in_order_;  // not taken
  std::vector<std::jthread> threads_;          // declared last, so that they are stopped first
};

}  // namespace stretto::token_corpus
