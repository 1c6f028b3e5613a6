#include "stretto/trainer/run/fit.h"

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/log_setup.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/environment.h"
#include "stretto/cluster/flight_recorder.h"
#include "stretto/strategy/batch_plan.h"
#include "stretto/tensor/block_cache.h"

namespace stretto::trainer {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Fit::Fit(const SessionParts& parts, std::unique_ptr<RunCheckpoint> from)
    : recipe_(parts.recipe),
      mesh_(parts.mesh),
      continues_folder_(from != nullptr && from->continues_folder()),
      checkpoints_(recipe_, mesh_, parts.module, continues_folder_),
      session_(make_session(parts, from.get())),
      run_(*session_),
      step_log_(session_->step_log),
      models_(session_->models),
      evaluations_(*session_),
      callbacks_(session_->callbacks) {
  if (from != nullptr) result_.resumed_after = session_->steps_done();
  warn_of_settings();
}

// Names the settings of the recipe that a module with optimizers of its own does not use.
void Fit::warn_of_unused_optimizer() const {
  std::vector<std::string> unused;
  for (const auto& [name, place] : recipe_.origins.places)
    if (name.starts_with("optimizer.") || name.starts_with("scheduler."))
      unused.push_back(recipe_.origins.mention(name));
  if (unused.empty()) return;
  log::warning(
      "{} {} no effect: the optimizers and schedules of this run are those that configure_optimizers returned",
      fmt::join(unused, ", "), unused.size() == 1 ? "has" : "have");
}

void Fit::warn_of_settings() const {
  if (session_->manual) warn_of_unused_optimizer();
  const int64_t samples = session_->train.size();
  if (!session_->manual && session_->engine.facts().base_rates.lr == 0) {
    log::warning("the learning rate is 0: the run computes steps, but trains nothing; set optimizer.lr");
  }
  const int sharing = mesh_.size(Axes::data);
  if (samples < sharing) {
    log::warning("{} for {} ranks: some ranks have no samples and only take part in the reductions",
                 counted(samples, "sample"), sharing);
  }
  const int64_t batch = mesh_.batch_plan().global_batch_size;
  if (batch > samples) {
    log::warning(
        "the global batch of {} samples is larger than the {}: every step uses all of them; lower training.global_batch_size",
        batch, counted(samples, "training sample"));
  }
}

void Fit::require_first_evaluation() const {
  const auto& limit = recipe_.evaluate.first_by;
  const auto first = session_->evaluator.first();
  if (!limit || !first || *first <= *limit) return;
  throw ConfigError("{}: the first evaluation follows step {}, because {} is {}; expected at least {}",
                    recipe_.origins.label("evaluate.first_by"), *first,
                    recipe_.origins.mention("evaluate.every"), recipe_.evaluate.every.text(), *first);
}

void Fit::begin() {
  if (continues_folder_ && was_finished()) return;
  if (result_.resumed_after == 0) require_first_evaluation();
  trim_tensor_memory();  // temporary memory of the setup
  log::info("{}", session_->describe());
  prepare_callbacks();
  callbacks_.notify("fit_start", &Callback::fit_start);
  end_if_requested();
  if (over() && result_.resumed_after > 0 && is_complete()) {
    log::info(
        "nothing to do: the run in {} has ended; to continue it, change the setting that ended it, or choose another output",
        recipe_.output.string());
    leave_folder();
    return;
  }
  if (result_.resumed_after == 0 && !over()) evaluations_.at_start();
  evaluations_.begin();
}

void Fit::prepare_callbacks() {
  parallel::Engine& engine = session_->engine;
  callbacks_.set_position(*session_);
  callbacks_.context().catch_up = [&engine] { engine.weights().catch_up(); };
  callbacks_.context().weights = [&engine] { return engine.weights().all(); };
  if (!callbacks_.read_gradients()) return;
  callbacks_.context().gradients = [this] { return run_.gradients(); };
  run_.on_gradients([this](const StepReport& coming) {
    callbacks_.notify<const StepReport&>("gradients_ready", &Callback::gradients_ready, coming);
  });
}

void Fit::begin_records(int64_t steps_done) {
  step_log_.begin(steps_done, session_->total_steps(), session_->pending);
}

// Called after the first step, so that a run which fails before it leaves the files of an earlier run
// untouched.
void Fit::claim_folder() {
  if (claimed_folder_) return;
  claimed_folder_ = true;
  const bool continues = result_.resumed_after > 0 && continues_folder_;
  const EarlierFiles fresh = recipe_.training.fast_dev_run ? EarlierFiles::removed : EarlierFiles::kept;
  const EarlierFiles earlier = continues ? EarlierFiles::continued : fresh;
  if (session_->is_main_rank()) session_->folder->begin_run(dump_recipe(recipe_), earlier);
  log::release_file();
  const cluster::RankInfo info = cluster::read_rank_info();
  if (info.local_rank == 0) cluster::note_first_step(info.heartbeat);
  begin_records(result_.resumed_after);
  evaluations_.record_start();
}

// Whether the folder contains the results of a complete run. The same on all ranks.
bool Fit::is_complete() {
  const bool complete = session_->is_main_rank() && continues_folder_ &&
                        std::filesystem::exists(session_->folder->model()) &&
                        std::filesystem::exists(session_->folder->path() / "summary.json");
  return !mesh_.world().broadcast_bytes(complete ? "yes" : "", 0).empty();
}

// Whether the run in the folder has taken all its steps and written its results, which are then not changed.
bool Fit::was_finished() {
  if (!over() || !is_complete()) return false;
  const char* setting = recipe_.training.max_steps ? "training.max_steps" : "training.epochs";
  log::info(
      "nothing to do: the run in {} has completed all of its steps ({}); to train longer, raise {} and accept the change with --set 'checkpoint.accept_changes=[{}]'",
      recipe_.output.string(), session_->steps_done(), setting, setting);
  leave_folder();
  return true;
}

// Called when there is nothing to do: the folder, with its logs, stays as it is.
void Fit::leave_folder() {
  result_.was_finished = true;
  log::discard_held_file();
  const cluster::RankInfo info = cluster::read_rank_info();
  if (info.local_rank == 0) cluster::note_nothing_to_do(info.heartbeat);
}

void Fit::roll_back(const std::string& reason) {
  step_log_.pause();
  session_->restore(*checkpoints_.newest(reason));
  begin_records(session_->steps_done());
  evaluations_.begin();
}

// Saves the model of a run in which no evaluation had a finite metric. This precedes the last checkpoint, in
// case the disk has room for only one of them.
void Fit::save_last_weights() {
  if (models_.keep_last()) session_->save_models(true);
}

// Runs after the last checkpoint, so that a model that did not fit on the disk is written once a failed
// checkpoint has been removed. All ranks throw if a file could not be written.
void Fit::finish_files() {
  const std::string checkpoint = checkpoints_.finish();
  std::vector<std::string> failures;
  if (session_->is_main_rank()) failures = models_.finish();
  const bool is_model_there =
      session_->is_main_rank() && failures[0].empty() && std::filesystem::exists(session_->folder->model());
  failures.push_back(checkpoint.empty() || !is_model_there ? checkpoint
                                                           : fmt::format("{}; the model is in {}", checkpoint,
                                                                         session_->folder->model().string()));
  std::erase(failures, "");
  for (const std::string& of_rank :
       mesh_.world().all_gather_bytes(fmt::format("{}", fmt::join(failures, "; ")))) {
    if (!of_rank.empty()) throw IoError("{}", of_rank);
  }
}

void Fit::evaluate_model(const StepReport& report) {
  evaluations_.evaluate(report);
  if (over()) evaluations_.settle();
}

// Callbacks receive the same metrics on all ranks, but their decisions may depend on the clock or a file.
void Fit::end_if_requested() {
  std::string reason;
  for (const optim::Schedule* schedule : session_->schedules())
    if (reason.empty()) reason = schedule->end_reason();
  if (reason.empty() && !callbacks_.empty()) reason = callbacks_.agree_on_stop().value_or("");
  if (reason.empty()) return;
  result_.ended_by = reason;
  log::info("ended      after step {}: {}", session_->steps_done(), reason);
}

void Fit::write_record(const StepReport& report) {
  step_log_.write(report, session_->logged.take(session_->cursor.epoch_begins()));
}

void Fit::after(const StepReport& report) {
  result_.samples += report.samples;
  result_.tokens += report.tokens;
  callbacks_.set_position(*session_, report.epoch);
  step_log_.add(report);
  if (report.taken) session_->train_loss.add(report.loss);
  if (callbacks_.read_parameters()) session_->engine.weights().catch_up();
  session_->module.on_train_batch_end(report);
  callbacks_.notify<const StepReport&>("step_end", &Callback::step_end, report);
  if (report.requests.end) end_if_requested();
  if (report.requests.collect) evaluations_.collect();
  const auto evaluation = session_->evaluator.after(report, over());
  const bool epoch_logged = report.epoch_ends && session_->logged.has_epoch_values();
  if (step_log_.due(report, evaluation) || over() || epoch_logged) write_record(report);
  if (evaluation) evaluate_model(report);
  const bool evaluates = session_->evaluator.in_use();
  if (!evaluates && models_.has_further() && (report.epoch_ends || over()))
    session_->save_models(models_.improve_without_evaluation(session_->train_loss.take(), report));
  if (report.epoch_ends) {
    session_->engine.weights().catch_up();
    callbacks_.notify("epoch_end", &Callback::epoch_end);
  }
  if ((report.epoch_ends || evaluation) && !over()) {
    end_if_requested();
    if (over() && step_log_.pending()) write_record(report);
    if (over() && evaluates && !evaluation) evaluate_model(report);
  }
  const auto& limit = recipe_.training.steps_this_run;
  const bool pauses = limit && session_->steps_done() - result_.resumed_after >= *limit;
  result_.stopped = (report.requests.stop || pauses) && !over();
  if (over()) {
    evaluations_.settle();
    save_last_weights();
  }
  if (!checkpoints_.due(report, evaluation, over(), result_.stopped)) return;
  evaluations_.before_checkpoint(report.step, result_.stopped);
  session_->save_models(false);
  session_->engine.compare_replicas();
  session_->require_finite();
  checkpoints_.save(session_->state(), report, over() || result_.stopped,
                    recipe_.evaluate.async ? std::nullopt : models_.score());
  callbacks_.notify("checkpoint_saved", &Callback::checkpoint_saved);
}

// Returns the requests that this rank has received.
Requests Fit::requests() {
  Requests requests = checkpoints_.requests();
  requests.end = callbacks_.stop_requested();
  requests.evaluate = session_->evaluator.requested();
  requests.collect = evaluations_.arrived();
  requests.record = step_log_.requested();
  return requests;
}

FitResult Fit::run() {
  begin();
  if (result_.was_finished) {
    result_.steps = session_->steps_done();
    mesh_.world().barrier();
    return result_;
  }
  const auto start = Clock::now();
  // requests of a step that was rolled back, for the next one: signals are read only once
  Requests postponed;
  while (!over() && !result_.stopped) {
    callbacks_.set_position(*session_);
    if (session_->cursor.epoch_begins()) callbacks_.notify("epoch_start", &Callback::epoch_start);
    callbacks_.notify("step_start", &Callback::step_start);
    const StepReport report = run_.step(requests() | postponed);
    claim_folder();
    if (report.rollback.empty()) {
      postponed = {};
      after(report);
    } else {
      postponed = report.requests;
      roll_back(report.rollback);
    }
  }
  claim_folder();
  step_log_.pause();
  if (!result_.stopped) save_last_weights();
  finish_files();
  session_->engine.weights().catch_up();
  callbacks_.notify("fit_end", &Callback::fit_end);
  result_.steps = session_->steps_done();
  result_.skipped_steps = session_->loss_scale.skipped_steps();
  result_.total_steps = session_->total_steps();
  result_.seconds = seconds_since(start);
  result_.best = models_.metrics();
  result_.best_epoch = models_.epoch();
  result_.best_step = models_.step();
  mesh_.world().barrier();  // no rank returns before the model is written
  return result_;
}

}  // namespace stretto::trainer
