#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

namespace stretto::track {

// A test double of an MLflow server, on a port of 127.0.0.1, with the part of MLflow's REST API that stretto
// uses, and its rules: parameters cannot be changed, at most 1,000 values and 100 parameters per request,
// equal values are stored once.
class MlflowDouble {
 public:
  struct Run {
    std::string experiment, name, status = "RUNNING";
    std::map<std::string, std::string> params, tags, artifacts;
    std::set<std::tuple<std::string, int64_t, int64_t, std::string>> metrics;  // key, step, timestamp, value
  };

  // `port` 0: a free one.
  explicit MlflowDouble(int port = 0) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  MlflowDouble(const MlflowDouble&) = delete;
  MlflowDouble& operator=(const MlflowDouble&) = delete;
  ~MlflowDouble() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  int port() const { return port_; }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

  // The next `count` requests are answered with this status, after being carried out if `lose` is set.
  void fail(int count, int status, bool lose = false) {
    const std::lock_guard guard(mutex_);
    failures_ = count;
    failure_status_ = status;
    lose_ = lose;
  }
  // Makes requests require this value of the header Authorization.
  void require_authorization(const std::string& value) {
    const std::lock_guard guard(mutex_);
    authorization_ = value;
  }
  // Makes the server accept requests and never answer them.
  void stall() { stalled_ = true; }

  std::map<std::string, Run> runs() const {
    const std::lock_guard guard(mutex_);
    return runs_;
  }
  Run only_run() const {
    const auto all = runs();
    return all.size() == 1 ? all.begin()->second : Run{};
  }
  std::vector<std::string> requests() const {
    const std::lock_guard guard(mutex_);
    return requests_;
  }
  // The steps of a metric, in order; a step occurs once per different value or time.
  static std::vector<int64_t> steps(const Run& run, const std::string& key) {
    std::vector<int64_t> list;
    for (const auto& [name, step, time, value] : run.metrics) {
      if (name == key) list.push_back(step);
    }
    return list;
  }

 private:
  using Json = nlohmann::json;
  struct Refusal {
    int status;
    std::string code, message;
  };

  void serve() {
    while (!stopping_) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      if (stalled_) {
        stalled_connections_.push_back(connection);
        continue;
      }
      answer(connection);
      ::close(connection);
    }
    for (const int connection : stalled_connections_) ::close(connection);
  }

  static std::string header(const std::string& head, const std::string& name) {
    const size_t found = head.find("\r\n" + name + ": ");
    if (found == std::string::npos) return "";
    const size_t begin = found + 2 + name.size() + 2;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }

  void answer(int connection) {
    std::string text;
    char bytes[16384];
    const auto more = [&] {
      const ssize_t got = ::read(connection, bytes, sizeof bytes);
      if (got > 0) text.append(bytes, static_cast<size_t>(got));
      return got > 0;
    };
    size_t end = 0;
    while ((end = text.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return;
    }
    const std::string head = text.substr(0, end);
    const std::string length = header(head, "Content-Length");
    const size_t size = length.empty() ? 0 : std::stoul(length);
    while (text.size() < end + 4 + size) {
      if (!more()) return;
    }
    const std::string method = head.substr(0, head.find(' '));
    const std::string path =
        head.substr(method.size() + 1, head.find(' ', method.size() + 1) - method.size() - 1);
    int status = 200;
    std::string reply;
    try {
      reply = handle(method, path, head, text.substr(end + 4));
    } catch (const Refusal& refusal) {
      status = refusal.status;
      reply = refusal.code.empty() ? refusal.message
                                   : Json{{"error_code", refusal.code}, {"message", refusal.message}}.dump();
    }
    const std::string whole = fmt::format(
        "HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status, reply.size(), reply);
    for (size_t sent = 0; sent < whole.size();) {
      const ssize_t count = ::send(connection, whole.data() + sent, whole.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  std::string handle(const std::string& method, const std::string& path, const std::string& head,
                     const std::string& body) {
    const std::lock_guard guard(mutex_);
    requests_.push_back(method + " " + path);
    if (!authorization_.empty() && header(head, "Authorization") != authorization_)
      throw Refusal{401, "", "You are not authenticated"};
    const bool fails = failures_ > 0;
    failures_ -= fails;
    if (fails && !lose_) throw Refusal{failure_status_, "", "busy"};
    const std::string reply = carry_out(method, path, body);
    if (fails) throw Refusal{failure_status_, "", "busy"};
    return reply;
  }

  Run& run(const Json& body) {
    const auto found = runs_.find(body.at("run_id"));
    if (found == runs_.end()) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST", "Run not found"};
    return found->second;
  }

  static Json info(const std::string& id, const Run& run) {
    return {{"info",
             {{"run_id", id},
              {"artifact_uri", "mlflow-artifacts:/" + run.experiment + "/" + id + "/artifacts"}}}};
  }

  std::string carry_out(const std::string& method, const std::string& path, const std::string& text) {
    const std::string artifacts = "/api/2.0/mlflow-artifacts/artifacts/";
    if (method == "PUT" && path.starts_with(artifacts)) {
      const std::string rest = path.substr(artifacts.size());  // EXPERIMENT/RUN/artifacts/FILE
      const size_t slash = rest.find('/');
      const std::string id = rest.substr(slash + 1, rest.find('/', slash + 1) - slash - 1);
      run({{"run_id", id}}).artifacts[rest.substr(rest.rfind('/') + 1)] = text;
      return "{}";
    }
    const std::string prefix = "/api/2.0/mlflow/";
    if (!path.starts_with(prefix)) throw Refusal{404, "", "<html>Not Found</html>"};
    const std::string call = path.substr(prefix.size());
    const Json body = text.empty() ? Json::object() : Json::parse(text);
    if (call.starts_with("experiments/get-by-name?experiment_name=")) {
      const std::string name = call.substr(call.find('=') + 1);
      if (!experiments_.contains(name)) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST", "no such experiment"};
      return Json{{"experiment", {{"experiment_id", experiments_[name]}}}}.dump();
    }
    if (call == "experiments/create") {
      const std::string name = body.at("name");
      if (experiments_.contains(name)) throw Refusal{400, "RESOURCE_ALREADY_EXISTS", "exists"};
      experiments_[name] = std::to_string(experiments_.size() + 1);
      return Json{{"experiment_id", experiments_[name]}}.dump();
    }
    if (call == "runs/create") {
      const std::string id = fmt::format("run{}", runs_.size());
      Run& made = runs_[id];
      made.experiment = body.at("experiment_id");
      made.name = body.at("run_name");
      for (const Json& tag : body.at("tags")) made.tags[tag.at("key")] = tag.at("value");
      return Json{{"run", info(id, made)}}.dump();
    }
    if (call == "runs/search") {
      for (const auto& [id, made] : runs_) {
        for (const auto& [key, value] : made.tags) {
          if (body.at("filter") == fmt::format("tags.`{}` = '{}'", key, value))
            return Json{{"runs", {info(id, made)}}}.dump();
        }
      }
      return "{}";
    }
    if (call == "runs/update") {
      run(body).status = body.at("status");
      return "{}";
    }
    if (call == "runs/log-batch") {
      if (body.at("metrics").size() > 1000 || body.at("params").size() > 100)
        throw Refusal{400, "INVALID_PARAMETER_VALUE", "too many"};
      Run& target = run(body);
      for (const Json& param : body.at("params")) {
        const auto [place, added] = target.params.try_emplace(param.at("key"), param.at("value"));
        if (!added && place->second != param.at("value").get<std::string>())
          throw Refusal{400, "INVALID_PARAMETER_VALUE", "Changing param values is not allowed"};
      }
      for (const Json& metric : body.at("metrics"))
        target.metrics.emplace(metric.at("key"), metric.at("step"), metric.at("timestamp"),
                               metric.at("value").dump());
      return "{}";
    }
    throw Refusal{404, "ENDPOINT_NOT_FOUND", call};
  }

  int listener_, port_ = 0;
  std::atomic<bool> stopping_ = false, stalled_ = false;
  std::vector<int> stalled_connections_;
  mutable std::mutex mutex_;
  int failures_ = 0, failure_status_ = 0;
  bool lose_ = false;
  std::string authorization_;
  std::map<std::string, std::string> experiments_;
  std::map<std::string, Run> runs_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace stretto::track
