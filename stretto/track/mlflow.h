#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stretto/track/mlflow_run.h"
#include "stretto/track/tracker.h"

namespace stretto::track {

struct MlflowOptions {
  std::filesystem::path folder;  // the run folder
  std::string uri;
  std::chrono::milliseconds first_retry{1000},
      last_retry{60000};                      // waiting time after failures, doubled each time
  std::chrono::milliseconds patience{10000};  // for sending the last values at the end of the run
};

// Records a run on an MLflow server. The training thread only wakes a thread, which sends the contents of the
// run folder (mlflow_sender.h): metrics.jsonl, config.yaml, the log, and the final state from progress.json.
// The trackers that write these files must be called before this one. Training continues while the server
// does not answer; `stretto track sync` sends the remaining records later. A resumed run continues the run on
// the server.
class Mlflow : public Tracker {
 public:
  explicit Mlflow(MlflowOptions options) : options_(std::move(options)) {}
  ~Mlflow() override;

  std::string name() const override;
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;
  void write_artifact(const std::filesystem::path& file) override;
  void end(RunEnd how) override;

 private:
  void wake();
  void stop_sending();
  void send_until_stopped();
  void report_unsent();

  const MlflowOptions options_;
  bool begun_ = false;
  Fd lock_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> files_;  // files to pass to the sender
  int64_t woken_ = 0;               // number of wake-ups
  bool sent_all_ = false;           // whether all records of the last wake-up are sent
  bool ending_ = false;
  bool gave_up_ = false;  // the last attempt has failed
  std::atomic<bool> cancelled_ = false;
  std::thread sender_;
};

// Makes the tracker from the settings of a recipe and MLFLOW_TRACKING_URI.
std::shared_ptr<Tracker> make_mlflow_tracker(const TrackerSetup& setup);

}  // namespace stretto::track
