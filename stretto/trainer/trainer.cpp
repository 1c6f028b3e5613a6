#include "stretto/trainer/trainer.h"

#include <chrono>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/trainer/best_model.h"
#include "stretto/trainer/checkpoints.h"
#include "stretto/trainer/evaluate.h"
#include "stretto/trainer/run_folder.h"
#include "stretto/trainer/step_log.h"
#include "stretto/trainer/training_run.h"

namespace stretto {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string one_line(const Metrics& metrics) {
  std::string line;
  for (const auto& [name, value] : metrics)
    line += fmt::format("{}{} {:.4f}", line.empty() ? "" : " | ", name, value);
  return line;
}

// Rank 0 works the metrics out; all ranks get the same, or all throw because one of them is no number.
Metrics evaluate_and_share(Module& module, const data::Dataset& dataset, Group& group, int64_t batch_size,
                           at::Device device, int64_t step) {
  const Evaluation evaluation = evaluate(module, dataset, group, batch_size, device);
  std::vector<uint8_t> bytes;
  if (group.rank() == 0)
    bytes = nlohmann::json::to_cbor(module.metrics(evaluation.rows));  // keeps NaN, unlike text
  const auto metrics =
      nlohmann::json::from_cbor(group.broadcast_bytes({bytes.begin(), bytes.end()}, 0)).get<Metrics>();
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value)) continue;
    throw Error(
        "step {}: the evaluation's {} ({}) is not finite: the weights have left the range of numbers. Lower "
        "optimizer.lr or set training.max_grad_norm",
        step, name, value);
  }
  return metrics;
}

}  // namespace

FitResult Trainer::fit(Module& module, const data::Dataset& train, const data::Dataset* validation) {
  const bool main_rank = group_.rank() == 0;
  std::optional<RunFolder> folder;
  if (main_rank) folder.emplace(recipe_.output);
  TrainingRun run(recipe_, module, train, group_, device_);
  if (train.size() < group_.size()) {
    log::warning("{} samples for {} ranks: some ranks only take part in the reductions", train.size(),
                 group_.size());
  }
  StepLog step_log(recipe_, group_.rank());
  BestModel best(recipe_.checkpoint);
  Checkpoints checkpoints(recipe_, group_);
  const auto describe_state = [&] {
    State state = run.state();
    step_log.add_state(state);
    best.add_state(state);
    return state;
  };
  FitResult result;
  const auto resume = [&](const State& state) {
    run.resume(state);
    step_log.resume(state);
    const std::string has_model = main_rank && std::filesystem::exists(folder->model()) ? "yes" : "";
    if (!group_.broadcast_bytes(has_model, 0).empty())
      best.resume(state);  // else the next one is the best there is
    run.compare_replicas();
  };
  if (State state = describe_state(); checkpoints.load(state)) {
    resume(state);
    result.resumed_after = run.steps_done();
  }
  log::info("{}", run.describe());
  step_log.begin(run.steps_done(), run.total_steps());

  const bool evaluates = validation != nullptr && recipe_.evaluate.every == "epoch";
  const int64_t evaluation_batch =
      recipe_.evaluate.batch_size.value_or(recipe_.training.batch_size.value_or(32));
  const auto start = Clock::now();
  while (run.steps_done() < run.total_steps() && !result.stopped) {
    const StepReport report = run.step(checkpoints.ask());
    if (!report.rollback.empty()) {
      step_log.pause();
      State state = describe_state();
      checkpoints.roll_back(state, report.rollback);
      resume(state);
      step_log.begin(run.steps_done(), run.total_steps());
      continue;
    }
    const bool last = report.step == run.total_steps();
    result.samples += report.samples;
    step_log.add(report);
    if (evaluates && (report.epoch_ends || last)) {
      step_log.pause();
      const Metrics metrics =
          evaluate_and_share(module, *validation, group_, evaluation_batch, device_, report.step);
      step_log.add(report, metrics);
      const bool keep = best.improves(metrics, report.epoch + 1);
      log::info("epoch {} | {}{}", report.epoch + 1, one_line(metrics), keep ? " | best so far, kept" : "");
      if (keep && main_rank) folder->save_model(module, run.weights());
    }
    if (checkpoints.due(report, last)) {
      run.compare_replicas();
      checkpoints.save(describe_state(), report, last || report.requests.stop, best.score());
    }
    result.stopped = report.requests.stop && !last;
  }
  step_log.pause();
  checkpoints.finish();
  if (!evaluates && main_rank && !result.stopped) folder->save_model(module, run.weights());
  result.steps = run.steps_done();
  result.seconds = seconds_since(start);
  result.best = best.metrics();
  result.best_epoch = best.epoch();
  group_.barrier();  // no rank leaves before the model is written
  return result;
}

}  // namespace stretto
