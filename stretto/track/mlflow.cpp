#include "stretto/track/mlflow.h"

#include <algorithm>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/track/mlflow_sender.h"

namespace stretto::track {

Mlflow::~Mlflow() { stop_sending(); }

std::string Mlflow::name() const { return (options_.folder / "mlflow").string(); }

void Mlflow::begin(const TrackedRun& run) {
  stop_sending();
  if (run.steps_done == 0) remove_mlflow_sent(options_.folder);
  sent_all_ = gave_up_ = ending_ = false;
  begun_ = true;
  lock_.reset();
  lock_ = lock_mlflow(options_.folder);
  if (!lock_) {
    log::warning(
        "mlflow: another process sends the values of {}; stretto track sync sends the new ones later",
        options_.folder.string());
    return;
  }
  cancelled_ = false;
  sender_ = std::thread([this] { send_until_stopped(); });
}

void Mlflow::wake() {
  const std::lock_guard guard(mutex_);
  ++woken_;
  sent_all_ = false;
  changed_.notify_all();
}

void Mlflow::write(const Record&) { wake(); }

void Mlflow::write_artifact(const std::filesystem::path& file) {
  {
    const std::lock_guard guard(mutex_);
    files_.push_back(file.lexically_proximate(options_.folder).string());
  }
  wake();
}

void Mlflow::stop_sending() {
  {
    const std::lock_guard guard(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
  if (sender_.joinable()) sender_.join();
}

void Mlflow::send_until_stopped() try {
  MlflowSender sender(options_.folder, options_.uri, &cancelled_);
  auto pause = options_.first_retry;
  bool reported = false;
  while (!cancelled_) {
    int64_t seen = 0;
    {
      const std::lock_guard guard(mutex_);
      seen = woken_;
      sender.add(std::exchange(files_, {}));
    }
    try {
      while (!cancelled_ && sender.send_next()) {
        if (reported) log::info("mlflow: {} answers again", options_.uri);
        reported = false;
        pause = options_.first_retry;
      }
      std::unique_lock guard(mutex_);
      if (seen == woken_) sent_all_ = !cancelled_;
      changed_.notify_all();
      changed_.wait(guard, [&] { return cancelled_ || seen != woken_; });
    } catch (const MlflowError& error) {
      if (cancelled_) return;
      if (!reported)
        log::warning("mlflow: {}; training continues, the values are kept in {} and sent later", error.what(),
                     (options_.folder / "metrics.jsonl").string());
      reported = true;
      std::unique_lock guard(mutex_);
      gave_up_ = ending_;
      changed_.notify_all();
      if (gave_up_) return;
      changed_.wait_for(guard, pause, [&] { return cancelled_ || ending_; });
      pause = std::min(2 * pause, options_.last_retry);
    }
  }
} catch (const std::exception& error) {
  log::warning("mlflow: {}; nothing more is sent; training continues", error.what());
  const std::lock_guard guard(mutex_);
  gave_up_ = true;
  changed_.notify_all();
}

void Mlflow::end(RunEnd) {
  if (!begun_) return;
  wake();
  {
    std::unique_lock guard(mutex_);
    ending_ = true;
    changed_.notify_all();
    if (sender_.joinable())
      changed_.wait_for(guard, options_.patience, [&] { return sent_all_ || gave_up_; });
  }
  stop_sending();
  try {
    report_unsent();
  } catch (const Error& error) {
    log::warning("mlflow: {}", error.what());
  }
  lock_.reset();
}

void Mlflow::report_unsent() {
  MlflowSender sender(options_.folder, options_.uri);
  if (lock_) sender.add(std::exchange(files_, {}));
  const int64_t left = sender.unsent();
  if (left == 0) return;
  log::warning("mlflow: {} did not receive the last {}; send them later: stretto track sync {}", options_.uri,
               counted(left, "record"), shell_word(options_.folder.string()));
}

std::shared_ptr<Tracker> make_mlflow_tracker(const TrackerSetup& setup) {
  return std::make_shared<Mlflow>(
      MlflowOptions{.folder = setup.folder, .uri = mlflow_uri(setup).value_or("")});
}

}  // namespace stretto::track
