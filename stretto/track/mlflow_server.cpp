#include "stretto/track/mlflow_server.h"

#include <cstdlib>

#include "stretto/base/http.h"

namespace stretto::track {
namespace {

using Kind = MlflowError::Kind;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void add_credentials(HttpRequest& request) {
  request.user = environment("MLFLOW_TRACKING_USERNAME");
  request.password = environment("MLFLOW_TRACKING_PASSWORD");
  const std::string token = environment("MLFLOW_TRACKING_TOKEN");
  if (request.user.empty() && !token.empty()) request.headers.push_back("Authorization: Bearer " + token);
  request.check_certificate = environment("MLFLOW_TRACKING_INSECURE_TLS") != "true";
}

// The reason in a reply: MLflow's message, or the beginning of any other text.
std::string reason_in(const HttpReply& reply) {
  const auto body = nlohmann::json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  if (body.is_object() && body.contains("message") && body["message"].is_string())
    return body["message"].get<std::string>();
  return reply.body.substr(0, reply.body.find('\n')).substr(0, 200);
}

std::string error_code(const HttpReply& reply) {
  const auto body = nlohmann::json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  return body.is_object() && body.contains("error_code") && body["error_code"].is_string()
             ? body["error_code"].get<std::string>()
             : "";
}

void require_success(const HttpReply& reply, const std::string& url) {
  const int64_t status = reply.status;
  if (status >= 200 && status < 300) return;
  const std::string reason = reason_in(reply);
  if (status == 401 || status == 403) {
    throw MlflowError(
        Kind::refused,
        "{}: HTTP {} {}; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
        url, status, reason);
  }
  if (status >= 300 && status < 400) {
    throw MlflowError(Kind::refused, "{}: HTTP {}: the server is at another address; give that URL", url,
                      status);
  }
  if (status == 404 && error_code(reply).empty()) {
    throw MlflowError(Kind::refused,
                      "{}: HTTP 404: this is not an MLflow server's address; give the URL of its start page",
                      url);
  }
  const bool later = status == 408 || status == 425 || status == 429 || status >= 500;
  if (status == 404) throw MlflowError(Kind::missing, "{}: {}", url, reason);
  throw MlflowError(later ? Kind::unreachable : Kind::invalid, "{}: HTTP {} {}", url, status, reason);
}

std::vector<nlohmann::json> key_values(const nlohmann::json& object) {
  std::vector<nlohmann::json> list;
  for (const auto& [key, value] : object.items()) list.push_back({{"key", key}, {"value", value}});
  return list;
}

MlflowServer::Run run_of(const nlohmann::json& info) {
  return {info.at("run_id").get<std::string>(), info.value("artifact_uri", "")};
}

HttpReply send(HttpRequest request) {
  add_credentials(request);
  try {
    return send_request(request);
  } catch (const HttpError& error) {
    throw MlflowError(Kind::unreachable, "{}", error.what());
  }
}

// Calls `read`, and throws MlflowError for a reply without an expected field.
template <class Read>
auto read_reply(const std::string& uri, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw MlflowError(Kind::refused, "{}: the reply is not one of an MLflow server: {}", uri, error.what());
  }
}

}  // namespace

MlflowServer::MlflowServer(std::string uri, const std::atomic<bool>* cancelled)
    : uri_(std::move(uri)), cancelled_(cancelled) {
  while (uri_.ends_with('/')) uri_.pop_back();
}

nlohmann::json MlflowServer::call(const std::string& method, const std::string& path,
                                  const nlohmann::json& body) const {
  HttpRequest request{.method = method, .url = uri_ + "/api/2.0/mlflow/" + path, .cancelled = cancelled_};
  if (!body.is_null()) {
    request.headers.emplace_back("Content-Type: application/json");
    request.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  const std::string url = request.url;
  const HttpReply reply = send(std::move(request));
  require_success(reply, url);
  auto answer = nlohmann::json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) {
    throw MlflowError(Kind::refused, "{}: the reply is not JSON; give the URL of an MLflow server", url);
  }
  return answer;
}

std::string MlflowServer::find_or_create_experiment(const std::string& name) const {
  const std::string query = "experiments/get-by-name?experiment_name=" + url_encode(name);
  const auto find = [&] {
    return read_reply(uri_, [&] {
      return call("GET", query, nullptr).at("experiment").at("experiment_id").get<std::string>();
    });
  };
  try {
    return find();
  } catch (const MlflowError& error) {
    if (error.kind != Kind::missing) throw;
  }
  try {
    return read_reply(uri_, [&] {
      return call("POST", "experiments/create", {{"name", name}}).at("experiment_id").get<std::string>();
    });
  } catch (const MlflowError& error) {
    if (error.kind != Kind::invalid) throw;
    return find();  // another run has created it concurrently
  }
}

MlflowServer::Run MlflowServer::create_run(const std::string& experiment, const std::string& name,
                                           int64_t time, const nlohmann::json& tags) const {
  return read_reply(uri_, [&] {
    return run_of(call("POST", "runs/create",
                       {{"experiment_id", experiment},
                        {"run_name", name},
                        {"start_time", time},
                        {"tags", key_values(tags)}})
                      .at("run")
                      .at("info"));
  });
}

std::optional<MlflowServer::Run> MlflowServer::find_run(const std::string& experiment, const std::string& tag,
                                                        const std::string& value) const {
  return read_reply(uri_, [&]() -> std::optional<Run> {
    const auto found = call("POST", "runs/search",
                            {{"experiment_ids", {experiment}},
                             {"filter", fmt::format("tags.`{}` = '{}'", tag, value)},
                             {"max_results", 1}});
    if (!found.contains("runs") || found.at("runs").empty()) return std::nullopt;
    return run_of(found.at("runs").at(0).at("info"));
  });
}

void MlflowServer::log_batch(const std::string& run, const nlohmann::json& metrics,
                             const nlohmann::json& params) const {
  call("POST", "runs/log-batch",
       {{"run_id", run},
        {"metrics", metrics},
        {"params", key_values(params)},
        {"tags", nlohmann::json::array()}});
}

void MlflowServer::update_run(const std::string& run, const std::string& status,
                              std::optional<int64_t> end_time) const {
  nlohmann::json body = {{"run_id", run}, {"status", status}};
  if (end_time) body["end_time"] = *end_time;
  call("POST", "runs/update", body);
}

void MlflowServer::put_artifact(const Run& run, const std::filesystem::path& file,
                                const std::string& name) const {
  // mlflow-artifacts:/EXPERIMENT/RUN/artifacts, or mlflow-artifacts://HOST/EXPERIMENT/...
  std::string path = run.artifacts.substr(run.artifacts.find(':') + 1);
  if (path.starts_with("//"))
    path.erase(0, path.find('/', 2) == std::string::npos ? path.size() : path.find('/', 2));
  while (path.starts_with('/')) path.erase(0, 1);
  HttpRequest request{.method = "PUT",
                      .url = uri_ + "/api/2.0/mlflow-artifacts/artifacts/" + path + "/" + url_encode(name),
                      .headers = {"Content-Type: application/octet-stream"},
                      .upload = file,
                      .cancelled = cancelled_};
  const std::string url = request.url;
  require_success(send(std::move(request)), url);
}

void check_mlflow_uri(const std::string& uri, const std::string& where) {
  const bool is_http = uri.starts_with("http://") || uri.starts_with("https://");
  if (!is_http) {
    throw ConfigError(
        "{}: {} is not the URL of an MLflow server; expected http://HOST:PORT or https://HOST (for a folder or a database, start `mlflow server` on it)",
        where, uri);
  }
  const std::string rest = uri.substr(uri.find("://") + 3);
  const std::string host = rest.substr(0, rest.find('/'));
  if (host.find('@') != std::string::npos) {
    throw ConfigError(
        "{}: the URL holds a password, which would be written to logs and config.yaml; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead",
        where);
  }
  if (host.empty() || host.find_first_of(" \t") != std::string::npos)
    throw ConfigError("{}: {} names no host; expected http://HOST:PORT", where, uri);
}

}  // namespace stretto::track
