#include "stretto/trainer/records/step_log.h"

#include "stretto/base/log.h"
#include "stretto/track/progress.h"
#include "stretto/track/registry.h"
#include "stretto/track/status_file.h"
#include "stretto/track/text_log.h"

namespace stretto::trainer {

track::Trackers make_trackers(const Recipe& recipe, int rank,
                              const std::vector<std::shared_ptr<Tracker>>& more) {
  track::Trackers trackers;
  if (rank != 0) return trackers;
  if (const ProgressDisplay display = recipe.track.progress; display != ProgressDisplay::off)
    trackers.add(
        std::make_shared<track::Progress>(track::Progress::choose(display == ProgressDisplay::automatic)));
  trackers.add(std::make_shared<track::StatusFile>(recipe.output / "progress.json"));
  // metrics.jsonl comes first, because other trackers read records from it.
  std::vector<std::string> names = recipe.track.trackers;
  std::erase(names, "jsonl");
  if (!recipe.training.fast_dev_run) {
    names.insert(names.begin(), "jsonl");
    trackers.add(std::make_shared<track::TextLog>(recipe.output / "texts.jsonl"));
  }
  for (const std::string& name : names) trackers.add(find_tracker(name).make(tracker_setup(recipe)));
  for (const auto& tracker : more) trackers.add(tracker);
  return trackers;
}

void StepLog::begin(int64_t steps_done, int64_t total_steps,
                    const std::optional<PendingEvaluation>& pending) {
  if (trackers_.empty()) return;
  trackers_.begin({.steps_done = steps_done,
                   .total_steps = total_steps,
                   .settings = dump_recipe(recipe_),
                   .parameters = shared_settings(recipe_),
                   .pending_evaluation = pending && !pending->metrics ? pending->at.step : -1});
}

void StepLog::add(const StepReport& report) {
  throughput_.add(report.samples, report.tokens);
  use_.seconds += report.seconds;
  use_.communication += report.communication;
  use_.data_wait += report.data_wait;
  if (report.taken) loss_.add(report.loss);
  if (trackers_.empty()) return;
  const Record record = record_of(report);
  trackers_.step(record);
}

Record StepLog::record_of(const StepReport& report) const {
  Record record = {report.step,
                   report.epochs,
                   false,
                   {{"loss", loss_.mean()}, {"grad_norm", report.grad_norm}, {"lr", report.lr}}};
  if (report.loss_scale) {
    record.values.emplace_back("loss_scale", *report.loss_scale);
    record.values.emplace_back("skipped_steps", static_cast<double>(report.skipped_steps));
  }
  record.values.insert(record.values.end(), logged_.means.begin(), logged_.means.end());
  record.hidden = logged_.hidden;
  if (const auto rates = throughput_.rates()) {
    record.values.emplace_back("samples_per_second", rates->samples);
    record.values.emplace_back("tokens_per_second", rates->tokens);
  }
  record.values.insert(record.values.end(), rank_use_.begin(), rank_use_.end());
  return record;
}

void StepLog::write(const StepReport& report, const LoggedMeans& logged) {
  logged_ = logged;
  rank_use_ = gather_rank_use(mesh_, use_);
  const Record record = record_of(report);
  trackers_.write(record);
  loss_ = {};
  use_ = {};
  log_every_.restart();
}

void StepLog::write_evaluation(const StepReport& at, const Metrics& metrics, const EvaluationSpeed& speed) {
  Record record = {at.step, at.epochs, true, {metrics.begin(), metrics.end()}};
  for (auto& value : speed.values())
    if (!metrics.contains(value.first)) record.values.push_back(std::move(value));
  trackers_.write(record);
}

void StepLog::write_samples(int64_t step, const std::vector<std::string>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    // nlohmann::json quotes line ends and replaces bytes that are not UTF-8.
    log::info("sample     {}",
              nlohmann::json(texts[i]).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    trackers_.write_text(step, fmt::format("sample {}", i + 1), texts[i]);
  }
}

void StepLog::pause() {
  trackers_.pause();
  throughput_.pause();
}

void StepLog::add_state(State& state) const {
  state.scalars["log"] = {{"loss_sum", loss_.sum}, {"steps", static_cast<int64_t>(loss_.weight)}};
}

void StepLog::resume(const State& state) {
  state.scalar("log").at("loss_sum").get_to(loss_.sum);
  state.scalar("log").at("steps").get_to(loss_.weight);
}

}  // namespace stretto::trainer
