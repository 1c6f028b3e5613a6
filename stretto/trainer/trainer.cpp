#include "stretto/trainer/trainer.h"

#include <chrono>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/metrics/direction.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/progress.h"
#include "stretto/trainer/evaluate.h"
#include "stretto/trainer/run_folder.h"
#include "stretto/trainer/training_run.h"

namespace stretto {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string one_line(const Metrics& metrics) {
  std::string line;
  for (const auto& [name, value] : metrics) line += fmt::format("{}{} {:.4f}", line.empty() ? "" : " | ", name, value);
  return line;
}

// What rank 0 tells of the steps since it last spoke. The first step warms caches up and is left out of the speed.
class StepLog {
 public:
  StepLog(const Recipe& recipe, const TrainingRun& run, int rank)
      : every_(recipe.track.log_every),
        total_steps_(run.total_steps()),
        steps_an_epoch_(run.steps_an_epoch()),
        progress_(Progress::choose(recipe.track.progress, rank), recipe.track.log_every, run.total_steps()) {
    if (rank == 0) file_.emplace(recipe.output / "metrics.jsonl");
  }

  void add(const StepReport& report) {
    if (!file_) return;
    if (started_) {
      samples_ += report.samples;
      tokens_ += report.tokens;
    } else {
      started_ = Clock::now();
    }
    loss_sum_ += report.loss;
    ++steps_;
    const double seconds = seconds_since(*started_);
    ProgressState state = {report.step, total_steps_, epoch_of(report), loss_sum_ / steps_, report.lr};
    state.samples_per_second = seconds > 0 ? static_cast<double>(samples_) / seconds : 0;
    state.tokens_per_second = seconds > 0 ? static_cast<double>(tokens_) / seconds : 0;
    progress_.update(state);
    if (report.step % every_ != 0 && report.step != total_steps_) return;
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

  void add(const StepReport& at, const Metrics& metrics) {
    if (!file_) return;
    nlohmann::ordered_json record = {{"step", at.step}, {"epoch", epoch_of(at)}};
    for (const auto& [name, value] : metrics) record["eval_" + name] = value;
    file_->write(std::move(record));
  }

  // Evaluation and saving are not training time; the line is left standing.
  void pause() {
    progress_.finish();
    started_.reset();
    samples_ = tokens_ = 0;
  }

 private:
  double epoch_of(const StepReport& report) const {
    return static_cast<double>(report.step) / static_cast<double>(steps_an_epoch_);
  }

  int64_t every_, total_steps_, steps_an_epoch_;
  Progress progress_;
  std::optional<MetricsLog> file_;
  std::optional<Clock::time_point> started_;
  int64_t samples_ = 0, tokens_ = 0;
  double loss_sum_ = 0;
  double steps_ = 0;
};

// Rank 0 works the metrics out; all ranks get the same, or all throw because one of them is no number.
Metrics evaluate_and_share(Module& module, const data::Dataset& dataset, Group& group, int64_t batch_size,
                           at::Device device, int64_t step) {
  const Evaluation evaluation = evaluate(module, dataset, group, batch_size, device);
  std::vector<uint8_t> bytes;
  if (group.rank() == 0) bytes = nlohmann::json::to_cbor(module.metrics(evaluation.rows));  // keeps NaN, unlike text
  const auto metrics =
      nlohmann::json::from_cbor(group.broadcast_bytes({bytes.begin(), bytes.end()}, 0)).get<Metrics>();
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value)) continue;
    throw Error("step {}: the evaluation's {} ({}) is not finite: the weights have left the range of numbers. Lower "
                "optimizer.lr or set training.max_grad_norm",
                step, name, value);
  }
  return metrics;
}

// Keeps the best model so far in the run folder.
class BestModel {
 public:
  BestModel(const CheckpointConfig& config) : monitor_(config.monitor.value_or("loss")), mode_(config.mode) {}

  bool improves(const Metrics& metrics) {
    const auto found = metrics.find(monitor_);
    if (found == metrics.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : metrics) names.push_back(name);
      throw ConfigError("checkpoint.monitor: \"{}\" is not measured{} (measured: {})", monitor_,
                        did_you_mean(monitor_, names), fmt::join(names, ", "));
    }
    const bool better = !best_ || beats(found->second, *best_);
    if (better) best_ = found->second;
    return better;
  }

 private:
  bool beats(double value, double best) const {
    if (mode_ == "auto") return metrics::better(monitor_, value, best);
    return mode_ == "max" ? value > best : value < best;
  }

  std::string monitor_, mode_;
  std::optional<double> best_;
};

}  // namespace

FitResult Trainer::fit(Module& module, const data::Dataset& train, const data::Dataset* validation) {
  const bool main_rank = group_.rank() == 0;
  std::optional<RunFolder> folder;
  if (main_rank) folder.emplace(recipe_.output);
  TrainingRun run(recipe_, module, train, group_, device_);
  if (train.size() < group_.size()) {
    log::warning("{} samples for {} ranks: some ranks only take part in the reductions", train.size(), group_.size());
  }
  log::info("{}", run.describe());

  const bool evaluates = validation != nullptr && recipe_.evaluate.every == "epoch";
  const int64_t evaluation_batch = recipe_.evaluate.batch_size.value_or(recipe_.training.batch_size.value_or(32));
  StepLog step_log(recipe_, run, group_.rank());
  BestModel best(recipe_.checkpoint);
  FitResult result;
  const auto start = Clock::now();
  while (run.steps_done() < run.total_steps()) {
    const StepReport report = run.step();
    result.samples += report.samples;
    step_log.add(report);
    const bool epoch_ends = report.step % run.steps_an_epoch() == 0 || report.step == run.total_steps();
    if (!evaluates || !epoch_ends) continue;
    step_log.pause();
    const Metrics metrics = evaluate_and_share(module, *validation, group_, evaluation_batch, device_, report.step);
    step_log.add(report, metrics);
    const bool keep = best.improves(metrics);
    log::info("epoch {} | {}{}", report.epoch + 1, one_line(metrics), keep ? " | best so far, kept" : "");
    if (!keep) continue;
    result.best = metrics;
    result.best_epoch = report.epoch + 1;
    if (main_rank) folder->save_model(module, run.weights());
  }
  step_log.pause();
  if (!evaluates && main_rank) folder->save_model(module, run.weights());
  result.steps = run.steps_done();
  result.seconds = seconds_since(start);
  group_.barrier();  // no rank leaves before the model is written
  return result;
}

}  // namespace stretto
