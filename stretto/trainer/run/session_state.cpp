#include "stretto/base/error.h"
#include "stretto/trainer/run/session.h"

// The state of a run: saving and restoring it.
namespace stretto::trainer {
namespace {

// The model's configuration, which must not change during a run.
struct ModelIdentity {
  const Module& module;

  void add_state(State& state) const {
    state.scalars["model"] = module.model_config();
    state.scalars["exported_config"] = module.exported_config();
  }
  // Compares only values that the checkpoint has: older checkpoints lack the configuration.
  void resume(const State& state) const {
    const nlohmann::json& now = module.model_config();
    std::string differences;
    for (const auto& [name, value] : state.scalar("model").items()) {
      const std::string here = now.contains(name) ? now.at(name).dump() : "unset";
      if (value.dump() != here)
        differences += fmt::format("\n  {}: {} in the checkpoint, now {}", name, value.dump(), here);
    }
    if (differences.empty()) return;
    throw ConfigError(
        "the model's configuration differs from that of the run to resume:{}\nRestore it, or choose another output to train the changed model",
        differences);
  }
};

// A schedule without state has no scalar.
struct ScheduleState {
  optim::Schedule& schedule;

  void add_state(State& state) const {
    if (const nlohmann::json own = schedule.state(); !own.is_null()) state.scalars["scheduler"] = own;
  }
  void resume(const State& state) const {
    if (state.scalars.contains("scheduler")) schedule.resume(state.scalars.at("scheduler"));
  }
};

// A checkpoint without a pending evaluation has no scalar.
struct PendingState {
  std::optional<PendingEvaluation>& pending;

  void add_state(State& state) const {
    if (pending) state.scalars["pending_evaluation"] = pending->to_json();
  }
  void resume(const State& state) const {
    const auto saved = state.scalars.find("pending_evaluation");
    pending.reset();
    if (saved != state.scalars.end()) pending = PendingEvaluation::from_json(saved->second);
  }
};

struct TrainLoss {
  WeightedMean& mean;

  void add_state(State& state) const {
    state.scalars["train_loss"] = {{"sum", mean.sum}, {"steps", static_cast<int64_t>(mean.weight)}};
  }
  void resume(const State& state) const {
    state.scalar("train_loss").at("sum").get_to(mean.sum);
    state.scalar("train_loss").at("steps").get_to(mean.weight);
  }
};

}  // namespace

// The parts with state, in the order in which they restore it: parts that refuse the state of another run
// come first.
template <class Use>
void Session::each_part(const Use& use) {
  use(ModelIdentity{module});
  use(cursor);
  use(engine);
  if (manual) use(*manual);
  use(random);
  use(guard);
  use(loss_scale);
  if (products) use(*products);
  use(logged);
  use(ScheduleState{*schedule});
  use(step_log);
  use(callbacks);
  use(evaluator);
  use(PendingState{pending});
  use(TrainLoss{train_loss});
  use(models);
}

State Session::state() {
  State state;
  each_part([&](auto&& part) { part.add_state(state); });
  return state;
}

void Session::restore(StateSource& source) {
  State state;
  state.stored = source.tensors();
  each_part([&](auto&& part) { part.add_state(state); });
  source.fill(state);
  try {
    each_part([&](auto&& part) { part.resume(state); });
  } catch (const nlohmann::json::exception& error) {
    throw DataError("the checkpoint's scalars are malformed: {}; resume from another checkpoint",
                    error.what());
  }
  schedule->set_total_steps(count_total_steps());
  if (manual) manual->set_total_steps(count_total_steps());
}

}  // namespace stretto::trainer
