#pragma once

#include <atomic>
#include <filesystem>
#include <optional>

#include "stretto/track/mlflow_outbox.h"
#include "stretto/track/mlflow_server.h"

namespace stretto {

// Sends the outbox of a run, in order. An entry that was sent twice (the process died before it noted the first time)
// changes nothing on the server: values carry the times at which they were recorded, and a run is searched before it is
// created again.
class MlflowSender {
 public:
  // `uri` replaces that of the outbox. `cancelled` may be null, else must outlive this object.
  MlflowSender(std::filesystem::path run, std::optional<std::string> uri = std::nullopt,
               const std::atomic<bool>* cancelled = nullptr);

  // Sends the next entries, up to 1,000 values; false if there were none. Throws MlflowError; then the same entries are
  // next, except after Kind::invalid, where they are skipped.
  bool send_next();

  int64_t unsent() const { return mlflow_outbox::count_unsent(run_, sent_.position); }
  const mlflow_outbox::Sent& sent() const { return sent_; }

 private:
  void send(const MlflowServer& server, const nlohmann::json& entry);
  void begin_run(const MlflowServer& server, const nlohmann::json& run);
  void send_artifact(const MlflowServer& server, const std::string& file);
  void save();

  std::filesystem::path run_;
  std::optional<std::string> uri_;
  const std::atomic<bool>* cancelled_;
  mlflow_outbox::Sent sent_;
  bool artifacts_refused_ = false;
};

}  // namespace stretto
