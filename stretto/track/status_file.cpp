#include "stretto/track/status_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/process.h"

namespace stretto::track {
namespace {

nlohmann::ordered_json values_of(const Record& record) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const auto& [name, value] : record.values) values[name] = metric_json(name, value);
  return values;
}

// Replaces the file atomically: a reader sees the old or the new content.
void replace(const std::filesystem::path& path, const std::string& content) {
  const std::filesystem::path fresh = path.parent_path() / ("." + path.filename().string() + ".new");
  const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  const auto size = static_cast<ssize_t>(content.size());
  if (!fd || ::write(fd.get(), content.data(), content.size()) != size ||
      ::rename(fresh.c_str(), path.c_str()) != 0)
    throw IoError("cannot write {}: {}", path.string(), std::strerror(errno));
}

}  // namespace

void StatusFile::begin(const TrackedRun& run) {
  pace_ = {};
  last_.reset();
  status_ = {{"state", ""},
             {"host", host_name()},
             {"pid", ::getpid()},
             {"started", seconds_since_1970()},
             {"updated", 0},
             {"step", run.steps_done},
             {"total_steps", run.total_steps},
             {"epoch", 0},
             {"seconds_left", nullptr},
             {"values", nlohmann::ordered_json::object()},
             {"evaluation", nlohmann::ordered_json::object()}};
  save("training");
}

void StatusFile::save(const std::string& state) {
  status_["state"] = state;
  status_["updated"] = seconds_since_1970();
  saved_ = Clock::now();
  if (last_) {
    status_["step"] = last_->step;
    status_["epoch"] = last_->epoch;
    status_["values"] = values_of(*last_);
    if (const auto left = pace_.seconds_left(last_->step, status_["total_steps"]))
      status_["seconds_left"] = *left;
  }
  try {
    replace(path_, status_.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } catch (const IoError& error) {
    if (!std::exchange(warned_, true))
      log::warning("{}; training continues, but stretto top shows an old state", error.what());
  }
}

void StatusFile::step(const Record& record) {
  constexpr auto interval = std::chrono::milliseconds(500);
  pace_.start(record.step);
  last_ = record;
  if (Clock::now() - saved_ >= interval) save("training");
}

void StatusFile::write(const Record& record) {
  if (!record.evaluation) return step(record);
  status_["evaluation"] = values_of(record);
  status_["evaluation"]["step"] = record.step;
}

void StatusFile::pause() {
  if (!status_.empty()) save("waiting");
}

void StatusFile::end(RunEnd how) {
  if (status_.empty()) return;
  save(how == RunEnd::finished ? "finished" : how == RunEnd::stopped ? "stopped" : "failed");
}

}  // namespace stretto::track
