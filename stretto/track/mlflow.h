#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "stretto/track/mlflow_outbox.h"
#include "stretto/track/registry.h"
#include "stretto/track/tracker.h"

namespace stretto {

struct MlflowOptions {
  std::filesystem::path folder;  // of the run
  std::string uri;
  std::string experiment = "Default";
  std::string run_name;
  nlohmann::json tags = nlohmann::json::object();
  std::chrono::milliseconds first_retry{1000},
      last_retry{60000};                      // waiting time after failures, doubled each time
  std::chrono::milliseconds patience{10000};  // for the last values, at the end of the run
};

// Records a run on an MLflow server: settings as parameters, values as metrics train/... and eval/..., config.yaml and
// the log as artifacts. The training thread only appends to a file in the run folder (mlflow_outbox.h); a thread sends
// it. While the server does not answer, training continues, and what is not sent at its end can be sent later by
// `stretto track sync`. A resumed run continues the run on the server; steps that were recorded before are not recorded
// again, since the server cannot replace them.
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
  void append(const nlohmann::json& entry);
  void open(bool continues);
  void start_sending();
  void stop_sending();
  void send_until_stopped();

  const MlflowOptions options_;
  TrackedRun run_;
  std::optional<mlflow_outbox::Writer> outbox_;
  Fd lock_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t appended_ = 0;   // entries by this object
  bool sent_all_ = false;  // of them
  bool ending_ = false;
  bool gave_up_ = false;  // the last attempt has failed
  std::atomic<bool> cancelled_ = false;
  std::thread sender_;
};

// The tracker by the settings of a recipe and MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME.
std::shared_ptr<Tracker> make_mlflow_tracker(const TrackerSetup& setup);

// Throws ConfigError where that is not possible.
void check_mlflow(const TrackerSetup& setup);

}  // namespace stretto
