#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"

namespace stretto::track {

// Thrown if a request to an MLflow server failed.
struct MlflowError : Error {
  enum class Kind {
    unreachable,  // no reply, overload, or a fault of the server: the same request may succeed later
    refused,      // all requests will fail until something is changed: no permission, another kind of server
    missing,      // the experiment or run does not exist
    invalid       // this request never succeeds
  };
  template <class... Args>
  explicit MlflowError(Kind what, fmt::format_string<Args...> text, Args&&... args)
      : Error(text, std::forward<Args>(args)...), kind(what) {}
  Kind kind;
};

// The REST API 2.0 of MLflow, as far as tracking needs it. Credentials are read from MLFLOW_TRACKING_USERNAME
// and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN; MLFLOW_TRACKING_INSECURE_TLS=true accepts any
// certificate. Functions throw MlflowError. Times are in milliseconds since 1970.
class MlflowServer {
 public:
  // `uri`: http(s)://HOST[:PORT][/PATH]. `cancelled`: null, or must outlive this object.
  explicit MlflowServer(std::string uri, const std::atomic<bool>* cancelled = nullptr);

  const std::string& uri() const { return uri_; }

  std::string find_or_create_experiment(const std::string& name) const;  // its id

  struct Run {
    std::string id;
    std::string artifacts;  // URI of the artifacts
  };
  // `tags`: an object of texts.
  Run create_run(const std::string& experiment, const std::string& name, int64_t time,
                 const nlohmann::json& tags) const;
  // Finds a run of the experiment with this tag.
  std::optional<Run> find_run(const std::string& experiment, const std::string& tag,
                              const std::string& value) const;

  // metrics: [{"key", "value", "timestamp", "step"}, ...], at most 1,000. params: an object of texts, at most
  // 100.
  void log_batch(const std::string& run, const nlohmann::json& metrics, const nlohmann::json& params) const;

  // status: RUNNING, FINISHED, FAILED, KILLED; with the time of its end unless RUNNING.
  void update_run(const std::string& run, const std::string& status, std::optional<int64_t> end_time) const;

  // Whether files of a run can be stored through the server, according to its `artifacts`.
  static bool stores_artifacts(const Run& run) { return run.artifacts.starts_with("mlflow-artifacts:"); }
  void put_artifact(const Run& run, const std::filesystem::path& file, const std::string& name) const;

 private:
  nlohmann::json call(const std::string& method, const std::string& path, const nlohmann::json& body) const;

  std::string uri_;
  const std::atomic<bool>* cancelled_;
};

// Throws ConfigError unless `uri` is the URL of a server; `where` begins the message.
void check_mlflow_uri(const std::string& uri, const std::string& where);

}  // namespace stretto::track
