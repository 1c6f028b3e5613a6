#include "stretto/trainer/run/training_run.h"

// What a run logs, shows and saves.
namespace stretto {

// `totals`: of all ranks in the step that logged `mine` on this one.
void TrainingRun::keep_logged(const LoggedWindows& mine, const StepTotals& totals) {
  logged_.record.add(mine.record);
  logged_.epoch.add(mine.epoch);
  logged_somewhere_ |= totals.logged;
  logged_in_epoch_ |= totals.logged_in_epoch;
}

void TrainingRun::collect_logged() {
  if (logged_somewhere_) logged_.record.collect(mesh_);
  logged_somewhere_ = false;
}

void TrainingRun::collect_epoch() {
  if (logged_in_epoch_) logged_.epoch.collect(mesh_);
}

LoggedMeans TrainingRun::take_logged() {
  collect_logged();
  LoggedMeans logged = {.means = {}, .hidden = logged_.record.hidden()};
  logged.means = logged_.record.take();
  if (!has_epoch_values()) return logged;
  collect_epoch();
  logged_in_epoch_ = false;
  logged.hidden.merge(logged_.epoch.hidden());
  logged.means.merge(logged_.epoch.take());
  return logged;
}

void TrainingRun::show_gradients(const data::GlobalBatch& batch, double scale, const StepReport& report) {
  if (!on_gradients_) return;
  StepReport coming = report;
  coming.step = steps_done() + 1;
  coming.epochs =
      report.epochs_before + static_cast<double>(batch.samples.size()) / static_cast<double>(dataset_.size());
  gradient_scale_ = scale;
  on_gradients_(coming);
}

NamedTensors TrainingRun::gradients() { return engine_.gradients().by_name(gradient_scale_); }

State TrainingRun::state(int random_writers) {
  collect_logged();
  collect_epoch();
  State state;
  engine_.add_state(state);
  if (manual_) manual_->add_state(state);
  random_.add_state(state, mesh_.world().rank(), random_writers);
  if (products_) products_->add_state(state);
  guard_.add_state(state);
  state.scalars["logged"] = logged_.record.to_json();
  state.scalars["logged_in_epoch"] = {{"any", logged_in_epoch_}, {"values", logged_.epoch.to_json()}};
  if (const nlohmann::json schedule = schedule_->state(); !schedule.is_null())
    state.scalars["scheduler"] = schedule;
  cursor_.add_state(state);
  return state;
}

void TrainingRun::resume(const State& state) {
  cursor_.resume(state, data_name_);
  engine_.resume(state);
  if (manual_) manual_->resume(state);
  random_.resume(mesh_.world().rank());
  guard_.resume(state);
  if (products_) products_->resume(state);
  const nlohmann::json none = nlohmann::json::object();
  const bool first = mesh_.position(Axes::data) == 0;
  logged_.record.from_json(first ? state.scalar("logged") : none);
  logged_somewhere_ = false;
  logged_in_epoch_ = false;
  logged_.epoch.from_json(none);
  if (state.scalars.contains("logged_in_epoch")) {
    const nlohmann::json& saved = state.scalars.at("logged_in_epoch");
    saved.at("any").get_to(logged_in_epoch_);
    if (first) logged_.epoch.from_json(saved.at("values"));
  }
  if (state.scalars.contains("scheduler")) schedule_->resume(state.scalars.at("scheduler"));
  schedule_->set_total_steps(count_total_steps());
  if (manual_) manual_->set_total_steps(count_total_steps());
}

}  // namespace stretto
