#include "stretto/trainer/step_log.h"

#include <cmath>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

// The records of a metrics file up to a step. A last line that was cut short by the end of the run before is no record.
std::string records_until(const std::filesystem::path& path, int64_t step) {
  std::string kept;
  if (!std::filesystem::exists(path)) return kept;
  const std::string text = read_file(path);
  for (const std::string_view line : split(text, '\n')) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.value("step", int64_t{0}) <= step) kept.append(line).append("\n");
  }
  return kept;
}

}  // namespace

StepLog::StepLog(const Recipe& recipe, int rank) : recipe_(recipe), tells_(rank == 0) {}

void StepLog::begin(int64_t steps_done, int64_t total_steps) {
  if (!tells_) return;
  const std::filesystem::path path = recipe_.output / "metrics.jsonl";
  write_file_atomic(path, steps_done > 0 ? records_until(path, steps_done) : std::string());
  file_.emplace(path);
  total_steps_ = total_steps;
  progress_.emplace(Progress::choose(recipe_.track.progress, 0), recipe_.track.log_every, total_steps);
}

// The first step warms caches up and is left out of the speed.
void StepLog::add(const StepReport& report) {
  if (!tells_) return;
  if (started_) {
    samples_ += report.samples;
    tokens_ += report.tokens;
  } else {
    started_ = Clock::now();
  }
  if (report.taken) {
    loss_sum_ += report.loss;
    ++steps_;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - *started_).count();
  const double loss =
      steps_ > 0 ? loss_sum_ / static_cast<double>(steps_) : NAN;  // all left out: none is known
  ProgressState state = {report.step, total_steps_, report.epochs, loss, report.lr};
  state.samples_per_second = seconds > 0 ? static_cast<double>(samples_) / seconds : 0;
  state.tokens_per_second = seconds > 0 ? static_cast<double>(tokens_) / seconds : 0;
  progress_->update(state);
  if (report.step % recipe_.track.log_every != 0 && report.step != total_steps_) return;
  nlohmann::ordered_json record = {{"step", report.step},
                                   {"epoch", state.epoch},
                                   {"loss", state.loss},
                                   {"grad_norm", report.grad_norm},
                                   {"lr", report.lr}};
  if (state.samples_per_second > 0) {
    record["samples_per_second"] = state.samples_per_second;
    record["tokens_per_second"] = state.tokens_per_second;
  }
  file_->write(std::move(record));
  loss_sum_ = 0;
  steps_ = 0;
}

void StepLog::add(const StepReport& at, const Metrics& evaluated) {
  if (!tells_) return;
  nlohmann::ordered_json record = {{"step", at.step}, {"epoch", at.epochs}};
  for (const auto& [name, value] : evaluated) record["eval_" + name] = value;
  file_->write(std::move(record));
}

void StepLog::pause() {
  if (progress_) progress_->finish();
  started_.reset();
  samples_ = tokens_ = 0;
}

void StepLog::add_state(State& state) const {
  state.scalars["log"] = {{"loss_sum", loss_sum_}, {"steps", steps_}};
}

void StepLog::resume(const State& state) {
  state.scalars.at("log").at("loss_sum").get_to(loss_sum_);
  state.scalars.at("log").at("steps").get_to(steps_);
}

}  // namespace stretto
