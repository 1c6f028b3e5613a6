#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "stretto/track/mlflow_run.h"
#include "stretto/track/mlflow_server.h"

namespace stretto::track {

// Sends a run to an MLflow server from its folder: settings of config.yaml as parameters, the records of
// metrics.jsonl as metrics train/... and eval/..., and the final state of progress.json. Records up to the
// last steps sent are not sent again, since the server cannot replace values. Sending twice (because the
// process died before it stored its progress) is idempotent: values carry the times at which they were
// recorded, and a run is searched before it is created. Data that the server rejects permanently are skipped
// with a warning.
class MlflowSender {
 public:
  // `uri` replaces the one with which the run was recorded; at least one must exist. `cancelled`: null, or
  // must outlive this object. Throws ConfigError, IoError, DataError. REQUIRES: lock_mlflow(folder) is held,
  // or only unsent() is called.
  explicit MlflowSender(std::filesystem::path folder, const std::optional<std::string>& uri = std::nullopt,
                        const std::atomic<bool>* cancelled = nullptr);

  // Sends the next item, or records with up to 1,000 values; returns false if nothing is left. If it throws
  // MlflowError, the next call tries again.
  bool send_next();

  // Adds files to be sent, relative to the run folder.
  void add(const std::vector<std::string>& files);

  // The number of unsent records and files; an unsent begin or end of the run counts as one.
  int64_t unsent() const;

  int64_t records_sent() const { return records_sent_; }  // sent by this object
  const MlflowSent& sent() const { return sent_; }
  const std::string& uri() const { return uri_; }

 private:
  // The records of one request, and the position after them.
  struct Batch {
    nlohmann::json metrics = nlohmann::json::array();
    int64_t records = 0, training = -1, evaluation = -1, position = 0;
  };
  struct State {
    std::string status;  // MLflow's status
    int64_t time = 0;    // ms since 1970
  };

  State state_of_run() const;
  bool is_sent(const nlohmann::ordered_json& record) const;
  Batch next_batch();
  void begin_run(const MlflowServer& server);
  bool send_batch(const MlflowServer& server);
  bool send_rest(const MlflowServer& server, const State& state);
  void send_file(const MlflowServer& server, const MlflowServer::Run& run, const std::string& file);
  void save();

  const std::filesystem::path folder_;
  const std::atomic<bool>* const cancelled_;
  MlflowSent sent_;
  std::string uri_;
  int64_t position_ = 0;  // position in metrics.jsonl up to which records are sent
  ino_t inode_ = 0;       // of that file
  int64_t records_sent_ = 0;
  bool files_refused_ = false;
};

}  // namespace stretto::track
