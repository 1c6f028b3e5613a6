#include "stretto/trainer/step_log.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/progress.h"
#include "stretto/track/tensorboard.h"

namespace stretto {

StepLog::StepLog(const Recipe& recipe, int rank, std::vector<std::shared_ptr<Tracker>> more_trackers)
    : recipe_(recipe), log_every_(recipe.track.log_every, rank == 0) {
  if (rank != 0) return;
  const auto wanted = [&](const char* name) {
    return std::ranges::find(recipe.track.trackers, name) != recipe.track.trackers.end();
  };
  if (recipe.track.progress != "off")
    trackers_.push_back(std::make_shared<Progress>(Progress::choose(recipe.track.progress)));
  if (wanted("jsonl")) trackers_.push_back(std::make_shared<MetricsLog>(recipe.output / "metrics.jsonl"));
  if (wanted("tensorboard"))
    trackers_.push_back(std::make_shared<TensorBoard>(recipe.output / "tensorboard"));
  trackers_.insert(trackers_.end(), more_trackers.begin(), more_trackers.end());
}

void StepLog::begin(int64_t steps_done, int64_t total_steps) {
  const TrackedRun run = {steps_done, total_steps, dump_recipe(recipe_)};
  each_tracker([&](Tracker& tracker) { tracker.begin(run); });
}

// A full disk must not end the run. One warning per tracker reports its first error.
template <class Call>
void StepLog::each_tracker(const Call& call) {
  for (const auto& tracker : trackers_) {
    try {
      call(*tracker);
    } catch (const IoError& error) {
      if (failed_.insert(tracker.get()).second)
        log::warning("{}; training continues, but this file will be incomplete", error.what());
    }
  }
}

// The first step warms up caches and is excluded from the throughput.
void StepLog::add(const StepReport& report) {
  if (started_) {
    samples_ += report.samples;
    tokens_ += report.tokens;
  } else {
    started_ = Clock::now();
  }
  seconds_ += report.seconds;
  communication_ += report.communication;
  if (report.taken) {
    loss_sum_ += report.loss;
    ++steps_;
  }
  if (trackers_.empty()) return;
  const Record record = record_of(report);
  each_tracker([&](Tracker& tracker) { tracker.step(record); });
}

Record StepLog::record_of(const StepReport& report) const {
  const double loss =
      steps_ > 0 ? loss_sum_ / static_cast<double>(steps_) : NAN;  // all steps were skipped: unknown
  Record record = {report.step,
                   report.epochs,
                   false,
                   {{"loss", loss}, {"grad_norm", report.grad_norm}, {"lr", report.lr}}};
  record.values.insert(record.values.end(), logged_.begin(), logged_.end());
  const double seconds = started_ ? std::chrono::duration<double>(Clock::now() - *started_).count() : 0;
  if (samples_ > 0 && seconds > 0) {
    record.values.emplace_back("samples_per_second", static_cast<double>(samples_) / seconds);
    record.values.emplace_back("tokens_per_second", static_cast<double>(tokens_) / seconds);
  }
  if (seconds_ > 0) record.values.emplace_back("communication", communication_ / seconds_);
  return record;
}

void StepLog::write(const StepReport& report, const Metrics& logged) {
  logged_ = logged;
  const Record record = record_of(report);
  each_tracker([&](Tracker& tracker) { tracker.write(record); });
  loss_sum_ = seconds_ = communication_ = 0;
  steps_ = 0;
  log_every_.restart();
}

void StepLog::write_evaluation(const StepReport& at, const Metrics& metrics) {
  const Record record = {at.step, at.epochs, true, {metrics.begin(), metrics.end()}};
  each_tracker([&](Tracker& tracker) { tracker.write(record); });
}

void StepLog::pause() {
  each_tracker([](Tracker& tracker) { tracker.pause(); });
  started_.reset();
  samples_ = tokens_ = 0;
}

void StepLog::add_state(State& state) const {
  state.scalars["log"] = {{"loss_sum", loss_sum_}, {"steps", steps_}};
}

void StepLog::resume(const State& state) {
  state.scalar("log").at("loss_sum").get_to(loss_sum_);
  state.scalar("log").at("steps").get_to(steps_);
}

}  // namespace stretto
