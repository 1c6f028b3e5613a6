#include "stretto/trainer/run/evaluations.h"

#include <ATen/Context.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"
#include "stretto/cluster/environment.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/run/evaluation_process.h"
#include "stretto/trainer/run/session.h"

namespace stretto::trainer {
namespace {

// "epoch 2", or "step 500, epoch 1.25" inside an epoch.
std::string place_of(const StepReport& report) {
  return report.epoch_ends ? fmt::format("epoch {}", report.epoch + 1)
                           : fmt::format("step {}, epoch {:.2f}", report.step, report.epochs);
}

// "accuracy 0.9312 | loss 0.2044"
std::string one_line(const Metrics& metrics) {
  std::string line;
  for (const auto& [name, value] : metrics) line += (line.empty() ? "" : " | ") + metric_text(name, value);
  return line;
}

// The GPU of the process that evaluates: the first one that no rank of this host uses, else this rank's.
int gpu_to_evaluate() {
  const cluster::RankInfo info = cluster::read_rank_info();
  const int gpus = at::hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
  return gpus > info.local_world_size ? info.local_world_size : info.local_rank;
}

// The metric that a schedule follows; `number` of Session::schedules().
Monitor monitor_of(const Session& session, size_t number) {
  const std::string followed = session.schedules()[number]->monitor();
  if (followed.empty()) return session.models.monitor();
  return {session.several == nullptr ? session.recipe.origins.label("scheduler.monitor")
                                     : fmt::format("configure_optimizers: monitor of the schedule of \"{}\"",
                                                   session.several->part(number).name),
          followed, MetricMode::min};
}

// Throws ConfigError if metrics, of some samples, lack one that decisions depend on.
void require_monitored(const Session& session, Metrics metrics) {
  session.models.monitor().require_in_part(metrics);
  metrics["train_loss"] = 0;
  for (size_t i = 0; i < session.schedules().size(); ++i) monitor_of(session, i).require_in_part(metrics);
  const EarlyStoppingConfig& stopping = session.recipe.early_stopping;
  if (stopping.monitor)
    Monitor(session.recipe.origins.label("early_stopping.monitor"), *stopping.monitor, MetricMode::min)
        .require_in_part(metrics);
}

}  // namespace

nlohmann::json PendingEvaluation::to_json() const {
  nlohmann::json json = {{"step", at.step},
                         {"epoch", at.epoch},
                         {"epochs", at.epochs},
                         {"epoch_ends", at.epoch_ends},
                         {"train_loss", train_loss}};
  if (metrics) json["metrics"] = *metrics;
  return json;
}

PendingEvaluation PendingEvaluation::from_json(const nlohmann::json& json) {
  PendingEvaluation pending;
  json.at("step").get_to(pending.at.step);
  json.at("epoch").get_to(pending.at.epoch);
  json.at("epochs").get_to(pending.at.epochs);
  json.at("epoch_ends").get_to(pending.at.epoch_ends);
  json.at("train_loss").get_to(pending.train_loss);
  if (json.contains("metrics")) pending.metrics = json.at("metrics").get<Metrics>();
  return pending;
}

Evaluations::Evaluations(Session& session) : session_(session), recipe_(session.recipe) {}

Evaluations::~Evaluations() = default;

void Evaluations::at_start() {
  Evaluator& evaluator = session_.evaluator;
  if (!evaluator.in_use()) return;
  if (const auto metrics = evaluator.check()) {
    require_monitored(session_, *metrics);
    log::info("evaluation checked on {} batches per rank", recipe_.evaluate.sanity_steps);
  }
  if (!recipe_.evaluate.at_start) return;
  at_start_ = evaluator.evaluate(0);
  session_.models.monitor().value(at_start_->metrics);
  require_monitored(session_, at_start_->metrics);
  log::info("start | {}", one_line(at_start_->metrics));
}

void Evaluations::record_start() {
  if (at_start_) session_.step_log.write_evaluation({}, at_start_->metrics, at_start_->speed);
  at_start_.reset();
}

bool Evaluations::is_computed() const { return session_.pending && session_.pending->metrics; }

std::filesystem::path Evaluations::snapshot(int64_t step) const {
  return recipe_.output / "evaluating" / fmt::format("step-{}.safetensors", step);
}

// Snapshots remain after a run that was killed.
void Evaluations::remove_snapshots_except(int64_t step) const {
  const std::filesystem::path folder = recipe_.output / "evaluating", kept = snapshot(step);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path() != kept) std::filesystem::remove(entry.path(), ignored);
  std::filesystem::remove(folder, ignored);  // unless it holds one
}

void Evaluations::begin() {
  if (!session_.evaluator.in_use()) return session_.pending.reset();
  reply_ = nullptr;
  if (is_async() && session_.is_main_rank())
    process_ = std::make_unique<EvaluationProcess>(session_.evaluator.identities(), gpu_to_evaluate());
  auto& pending = session_.pending;
  if (session_.is_main_rank() && session_.steps_done() > 0)
    remove_snapshots_except(pending ? pending->at.step : -1);
  if (!pending) return;
  if (is_computed()) {
    if (!is_async()) settle();
    return;
  }
  const int64_t step = pending->at.step;
  const bool is_here = step == session_.steps_done();
  const bool found = process_ && std::filesystem::exists(snapshot(step));
  const bool has_file = !session_.mesh.world().broadcast_bytes(found ? "yes" : "", 0).empty();
  if (!is_here && !has_file) {
    log::warning("the evaluation of step {} is left out, as its snapshot {} is missing", step,
                 snapshot(step).string());
    return pending.reset();
  }
  if (!is_async()) {
    const Validated result = session_.evaluator.evaluate(step, may_be_nonfinite());
    session_.save_models(record(pending->at, result, pending->train_loss));
    pending->metrics = result.metrics;
    return settle();
  }
  if (is_here) save_snapshot(step);
  if (process_) process_->submit(step, snapshot(step));
}

void Evaluations::save_snapshot(int64_t step) {
  session_.engine.weights().catch_up();
  session_.engine.synchronise_buffers();
  const parallel::AveragedWeights average = session_.engine.weights().averaged(recipe_.ema.evaluate);
  session_.engine.weights().at_first([&](const ListedSource& weights) {
    make_folders(snapshot(step).parent_path());
    save_safetensors(snapshot(step), weights);
  });
}

void Evaluations::submit(const StepReport& report) {
  session_.pending = PendingEvaluation{.at = report, .train_loss = session_.train_loss.take()};
  save_snapshot(report.step);
  if (process_) process_->submit(report.step, snapshot(report.step));
}

// Errors are kept for wait(), which throws them on all ranks.
void Evaluations::poll(std::chrono::milliseconds patience) {
  if (!process_ || !reply_.is_null()) return;
  try {
    if (const auto result = process_->take(patience)) reply_ = {{"result", result->to_json()}};
  } catch (const std::exception& error) {
    reply_ = {{"error", error.what()}};
  }
}

bool Evaluations::arrived() {
  if (!session_.pending || is_computed()) return false;
  poll(std::chrono::milliseconds(0));
  return !reply_.is_null();
}

Validated Evaluations::wait() {
  constexpr std::chrono::seconds interval(5);  // ranks must communicate more often than their timeout
  for (;;) {
    poll(interval);
    std::vector<uint8_t> own;
    if (!reply_.is_null()) own = nlohmann::json::to_cbor(reply_);
    const std::string bytes = session_.mesh.world().broadcast_bytes({own.begin(), own.end()}, 0);
    if (bytes.empty()) continue;
    reply_ = nullptr;
    const auto reply = nlohmann::json::from_cbor(bytes);
    if (reply.contains("error")) throw Error("{}", reply.at("error").get<std::string>());
    return Validated::from_json(reply.at("result"));
  }
}

void Evaluations::evaluate(const StepReport& report) {
  session_.step_log.pause();
  session_.evaluator.count();
  if (is_async()) {
    settle();
    return submit(report);
  }
  const Validated result = session_.evaluator.evaluate(report.step, may_be_nonfinite());
  const double train_loss = session_.train_loss.take();
  session_.save_models(record(report, result, train_loss));
  take_effect(result.metrics, train_loss);
}

void Evaluations::collect() {
  if (!session_.pending || is_computed()) return;
  PendingEvaluation& pending = *session_.pending;
  session_.step_log.pause();
  const Validated result = wait();
  Evaluator::require_finite(pending.at.step, result.metrics, may_be_nonfinite());
  const bool due = record(pending.at, result, pending.train_loss);
  if (session_.is_main_rank()) save_selected(pending.at.step, due);
  pending.metrics = result.metrics;
}

void Evaluations::settle() {
  collect();
  if (!session_.pending) return;
  const PendingEvaluation done = *session_.pending;
  session_.pending.reset();
  take_effect(*done.metrics, done.train_loss);
}

void Evaluations::before_checkpoint(int64_t step, bool stops) {
  if (session_.pending && session_.pending->at.step < step && !stops) collect();
}

// Writes the models that are due from the snapshot that the last evaluation has selected.
void Evaluations::save_selected(int64_t step, bool due) {
  if (due) {
    session_.models.save(MemorySource(SafetensorsFile(snapshot(step)).load_all()));
  } else {
    session_.models.retry();
  }
  remove_snapshots_except(-1);
}

// Whether models are selected, which must then be saved.
bool Evaluations::record(const StepReport& at, const Validated& result, double train_loss) {
  StepLog& step_log = session_.step_log;
  KeptModels& models = session_.models;
  step_log.write_evaluation(at, result.metrics, result.speed);
  const bool due = models.improve(result.metrics, train_loss, at);
  log::info("{} | {}{}", place_of(at), one_line(result.metrics),
            models.is_due() ? " | best so far, kept" : "");
  if (!result.table.empty()) log::info("{}", result.table);
  step_log.write_samples(at.step, result.texts);
  return due;
}

void Evaluations::take_effect(const Metrics& metrics, double train_loss) {
  Metrics watched = metrics;
  watched["train_loss"] = train_loss;
  const std::vector<optim::Schedule*> schedules = session_.schedules();
  for (size_t i = 0; i < schedules.size(); ++i) {
    optim::Schedule* schedule = schedules[i];
    if (const auto loss = metrics.find("loss"); loss != metrics.end()) schedule->observe_loss(loss->second);
    schedule->observe(monitor_of(session_, i).value(watched));
  }
  FitContext& context = session_.callbacks.context();
  context.evaluation = metrics;
  context.train_loss = train_loss;
  session_.callbacks.notify<const Metrics&>("evaluation_end", &Callback::evaluation_end, metrics);
}

// The metric of early stopping, whose NaN or infinity ends the run without an error.
std::string Evaluations::may_be_nonfinite() const {
  const EarlyStoppingConfig& config = recipe_.early_stopping;
  if (!config.in_use() || !config.check_finite) return "";
  return config.monitor ? Monitor("early_stopping.monitor", *config.monitor, MetricMode::min).metric()
                        : session_.models.monitor().metric();
}

}  // namespace stretto::trainer
