#include "stretto/track/mlflow.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "stretto/base/error.h"
#include "stretto/base/http.h"
#include "stretto/base/log.h"
#include "stretto/base/number_text.h"
#include "stretto/base/strings.h"
#include "stretto/track/clock.h"
#include "stretto/track/mlflow_sender.h"

namespace stretto {
namespace {

int64_t now_ms() { return static_cast<int64_t>(seconds_since_1970() * 1000); }

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// JSON has no NaN and infinity; protocol buffers' JSON has these names for them.
nlohmann::json metric_value(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

// Characters that MLflow allows in names.
std::string metric_name(std::string name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-. :/";
  constexpr size_t longest = 250;
  for (char& letter : name) {
    if (allowed.find(letter) == std::string_view::npos) letter = '_';
  }
  return name.substr(0, longest);
}

nlohmann::json as_texts(const nlohmann::json& parameters) {
  constexpr size_t longest = 500;  // of older servers
  nlohmann::json texts = nlohmann::json::object();
  for (const auto& [name, value] : parameters.items()) {
    if (value.is_null()) continue;
    texts[name] = (value.is_string() ? value.get<std::string>() : value.dump()).substr(0, longest);
  }
  return texts;
}

const char* status_of(RunEnd how) {
  switch (how) {
    case RunEnd::finished:
      return "FINISHED";
    case RunEnd::stopped:
      return "KILLED";
    default:
      return "FAILED";
  }
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::string> uri_of(const TrackerSetup& setup) {
  return setup.has_url() ? setup.logging_dir : variable("MLFLOW_TRACKING_URI");
}

}  // namespace

Mlflow::~Mlflow() { stop_sending(); }

std::string Mlflow::name() const { return mlflow_outbox::folder_of(options_.folder).string(); }

void Mlflow::open(bool continues) {
  outbox_.emplace(options_.folder, continues);
  if (outbox_->empty()) {
    append({{"run",
             {{"uri", options_.uri},
              {"experiment", options_.experiment},
              {"name", options_.run_name},
              {"time", now_ms()},
              {"tags", options_.tags},
              {"id", random_id()}}}});
    append({{"params", as_texts(run_.parameters)}});
    append({{"artifact", "config.yaml"}});
  } else {
    append({{"status", "RUNNING"}, {"time", now_ms()}});
  }
}

void Mlflow::begin(const TrackedRun& run) {
  stop_sending();
  run_ = run;
  outbox_.reset();
  open(run.steps_done > 0);
  start_sending();
}

void Mlflow::append(const nlohmann::json& entry) {
  outbox_->append(entry);
  const std::lock_guard guard(mutex_);
  ++appended_;
  sent_all_ = false;
  changed_.notify_all();
}

void Mlflow::write(const Record& record) {
  if (!outbox_) begin(run_);  // retry: begin() has failed
  if (record.step <= outbox_->last_step(record.evaluation)) return;
  nlohmann::json metrics = nlohmann::json::array();
  const auto add = [&](const std::string& name, double value) {
    metrics.push_back(
        {metric_name((record.evaluation ? "eval/" : "train/") + name), metric_value(value), record.step});
  };
  add("epoch", record.epoch);
  for (const auto& [name, value] : record.values) add(name, value);
  append({{"metrics", metrics}, {"time", now_ms()}});
}

void Mlflow::write_artifact(const std::filesystem::path& file) {
  if (!outbox_) begin(run_);
  append({{"artifact", file.lexically_proximate(options_.folder).string()}});
}

void Mlflow::start_sending() {
  lock_ = mlflow_outbox::lock(options_.folder);
  if (!lock_) {
    log::warning(
        "mlflow: another process sends the values of {}; stretto track sync sends the new ones later",
        options_.folder.string());
    return;
  }
  cancelled_ = false;
  sender_ = std::thread([this] { send_until_stopped(); });
}

void Mlflow::stop_sending() {
  {
    const std::lock_guard guard(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
  if (sender_.joinable()) sender_.join();
  lock_.reset();
}

void Mlflow::send_until_stopped() try {
  MlflowSender sender(options_.folder, options_.uri, &cancelled_);
  auto pause = options_.first_retry;
  bool reported = false;
  while (!cancelled_) {
    int64_t seen = 0;
    {
      std::unique_lock guard(mutex_);
      seen = appended_;
    }
    try {
      while (!cancelled_ && sender.send_next()) {
        if (reported) log::info("mlflow: {} answers again", options_.uri);
        reported = false;
        pause = options_.first_retry;
      }
      std::unique_lock guard(mutex_);
      if (seen == appended_) sent_all_ = !cancelled_;
      changed_.notify_all();
      changed_.wait(guard, [&] { return cancelled_ || seen != appended_; });
    } catch (const MlflowError& error) {
      if (cancelled_) return;
      if (error.kind == MlflowError::Kind::invalid) {
        log::warning("mlflow: {}; these values are left out", error.what());
        continue;
      }
      if (!reported)
        log::warning("mlflow: {}; training continues, the values are kept in {} and sent later", error.what(),
                     name());
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
}

void Mlflow::end(RunEnd how) {
  if (!outbox_) return;
  const std::filesystem::path log_file = options_.folder / "logger_logs" / "training_0.log";
  if (std::filesystem::exists(log_file)) write_artifact(log_file);
  append({{"status", status_of(how)}, {"time", now_ms()}});
  {
    std::unique_lock guard(mutex_);
    ending_ = true;
    changed_.notify_all();
    if (sender_.joinable())
      changed_.wait_for(guard, options_.patience, [&] { return sent_all_ || gave_up_; });
  }
  stop_sending();
  const int64_t left =
      mlflow_outbox::count_unsent(options_.folder, mlflow_outbox::read_sent(options_.folder).position);
  outbox_.reset();
  if (left > 0) {
    log::warning("mlflow: {} did not take the last {}; send them later: stretto track sync {}", options_.uri,
                 counted(left, "record"), shell_word(options_.folder.string()));
  }
}

std::shared_ptr<Tracker> make_mlflow_tracker(const TrackerSetup& setup) {
  MlflowOptions options{
      .folder = setup.folder, .uri = uri_of(setup).value_or(""), .run_name = setup.name_of_run()};
  options.experiment =
      setup.experiment ? *setup.experiment : variable("MLFLOW_EXPERIMENT_NAME").value_or("Default");
  for (const std::string& tag : setup.tags)
    options.tags[tag.substr(0, tag.find('='))] = tag.substr(tag.find('=') + 1);
  if (const auto user = variable("USER")) options.tags["mlflow.user"] = *user;
  options.tags["mlflow.source.name"] = "stretto";
  return std::make_shared<Mlflow>(std::move(options));
}

void check_mlflow(const TrackerSetup& setup) {
  const auto uri = uri_of(setup);
  if (!uri) {
    throw ConfigError(
        "mlflow needs the URL of a server; set track.logging_dir: http://HOST:5000, or the variable MLFLOW_TRACKING_URI");
  }
  check_mlflow_uri(*uri, setup.has_url() ? "track.logging_dir" : "MLFLOW_TRACKING_URI");
  require_http();
}

}  // namespace stretto
