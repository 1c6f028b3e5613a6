#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace stretto::comm {

// Runs the collectives of a group in the order of their calls on a separate thread, so that they overlap with
// computation. After one has failed, the connections are in an undefined state, and all later ones fail, too.
// This header includes no other one of stretto, because libstretto_mpi.so links none of its libraries.
class WorkThread {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  // The parts in which back ends differ.
  struct Hooks {
    std::function<std::exception_ptr(const std::string& why)> error;  // of the back end's type
    std::function<void()> abort;                                      // makes the running call fail soon
    std::function<void(const Tensors& keep)> failed;                  // on the thread, for a call that failed
  };

  explicit WorkThread(Hooks hooks) : hooks_(std::move(hooks)), thread_([this] { work(); }) {}
  // Waits up to a second for calls whose wait() was never called.
  ~WorkThread() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::seconds(1), [this] { return jobs_.empty(); });
      closing_ = true;
      changed_.notify_all();
    }
    hooks_.abort();
    thread_.join();
  }
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  // Queues a call. `keep`: tensors that must not be freed before it is done. Throws if an earlier call
  // has failed.
  WorkPtr start(Tensors keep, std::function<void()> run) {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) std::rethrow_exception(after_failure());
    jobs_.push_back({std::move(run), std::move(keep)});
    changed_.notify_all();
    return c10::make_intrusive<StartedWork>(jobs_.back().done.get_future());
  }

 private:
  struct Job {
    std::function<void()> run;
    Tensors keep;
    std::promise<void> done = {};
  };

  class StartedWork : public c10d::Work {
   public:
    explicit StartedWork(std::future<void> done) : done_(done.share()) {}
    bool isCompleted() override {
      return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }
    bool wait(std::chrono::milliseconds) override {
      done_.get();
      return true;
    }

   private:
    const std::shared_future<void> done_;
  };

  std::exception_ptr after_failure() const { return hooks_.error("an earlier call failed: " + failure_); }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job& job = jobs_.front();
      std::exception_ptr error;
      if (!failure_.empty()) {
        error = after_failure();
      } else {
        lock.unlock();
        std::string why;
        try {
          job.run();
        } catch (const std::exception& thrown) {
          error = std::current_exception();
          why = thrown.what();
          hooks_.failed(job.keep);
        }
        lock.lock();
        failure_ = why;
      }
      job.keep.clear();
      error ? job.done.set_exception(error) : job.done.set_value();
      jobs_.pop_front();
      changed_.notify_all();
    }
  }

  const Hooks hooks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job> jobs_;  // not done; the first is running
  bool closing_ = false;
  std::string failure_;  // set once; no later call can succeed
  std::thread thread_;
};

}  // namespace stretto::comm
