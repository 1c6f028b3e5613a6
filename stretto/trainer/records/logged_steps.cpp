#include "stretto/trainer/records/logged_steps.h"

#include "stretto/trainer/run/step_totals.h"

namespace stretto::trainer {

void LoggedSteps::add(const LoggedWindows& local, const StepTotals& totals) {
  windows_.record.add(local.record);
  windows_.epoch.add(local.epoch);
  is_logged_ |= totals.logged;
  is_logged_in_epoch_ |= totals.logged_in_epoch;
}

void LoggedSteps::collect_record() {
  if (is_logged_) windows_.record.collect(mesh_);
  is_logged_ = false;
}

void LoggedSteps::collect_epoch() {
  if (is_logged_in_epoch_) windows_.epoch.collect(mesh_);
}

LoggedMeans LoggedSteps::take(bool epoch_ends) {
  collect_record();
  LoggedMeans logged = {.means = {}, .hidden = windows_.record.hidden()};
  logged.means = windows_.record.take();
  if (!epoch_ends || !is_logged_in_epoch_) return logged;
  collect_epoch();
  is_logged_in_epoch_ = false;
  logged.hidden.merge(windows_.epoch.hidden());
  logged.means.merge(windows_.epoch.take());
  return logged;
}

void LoggedSteps::add_state(State& state) {
  collect_record();
  collect_epoch();
  state.scalars["logged"] = windows_.record.to_json();
  state.scalars["logged_in_epoch"] = {{"any", is_logged_in_epoch_}, {"values", windows_.epoch.to_json()}};
}

void LoggedSteps::resume(const State& state) {
  const nlohmann::json none = nlohmann::json::object();
  const bool is_first = mesh_.position(Axes::data) == 0;
  windows_.record.from_json(is_first ? state.scalar("logged") : none);
  is_logged_ = false;
  const nlohmann::json& epoch = state.scalar("logged_in_epoch");
  epoch.at("any").get_to(is_logged_in_epoch_);
  windows_.epoch.from_json(is_first ? epoch.at("values") : none);
}

}  // namespace stretto::trainer
