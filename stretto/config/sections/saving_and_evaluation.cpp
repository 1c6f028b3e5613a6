#include "stretto/config/model_rule.h"
#include "stretto/config/recipe.h"
#include "stretto/config/sections/limits.h"
#include "stretto/config/task_kind.h"
#include "stretto/settings/rule.h"
#include "stretto/track/registry.h"

// The sections checkpoint, evaluate, early_stopping and track.
namespace stretto {

using settings::at_least;
using settings::may_change_on_resume;
using settings::one_of;

namespace {

std::string describe_trackers() {
  std::string text;
  for (const TrackerKind& kind : tracker_kinds())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", kind.name, kind.help);
  return text;
}

}  // namespace

void CheckpointConfig::fields(settings::Fields& field) {
  field(
      "monitor", monitor,
      "metric by which the best model is chosen: a metric of the task, or loss; unset: the task's main metric");
  field("mode", mode, "whether a smaller or a larger value is better; auto: min for loss, else max");
  every.declare(field, "every", "interval at which the run is saved for resuming, and at its end");
  field("keep_last", keep_last, "number of newest checkpoints to keep; 0: all",
        at_least(0).at_most(max_count));
  field("keep_best", keep_best, "number of best checkpoints by monitor to keep in addition",
        at_least(0).at_most(max_count));
  field("keep_every", keep_every, "keep in addition each checkpoint whose step is a multiple of this",
        at_least(1).at_most(max_total));
  field("async", async, "write in the background, from a copy in memory");
  field("when_busy", when_busy,
        "when a checkpoint is due while another is being written: wait for it, or skip the new one");
  field("accept_changes", accept_changes,
        "settings that may differ from those of the resumed run, such as [optimizer.lr, training.epochs]");
  field("allow_nonfinite", allow_nonfinite,
        "save models and checkpoints, and test models, even if their weights hold NaN or infinity");
  field(
      "save_models", save_models,
      "models to keep besides model/, in models/: the best by each of these metrics, as in best_accuracy, best_f1>0.5, best_valid_loss<0.7, best_train_loss (the mean since the last evaluation); best_NAME:max for a metric of your own",
      model_rule_form());
  field(
      "folder_patience", folder_patience,
      "seconds for which ranks of other hosts look for the files of rank 0 in a network file system, before they count the output folder as one of their own host",
      at_least(0).at_most(3600));
}

void EvaluateConfig::fields(settings::Fields& field) {
  every.declare(field, "every", "interval at which the validation samples are evaluated, and at the end");
  field(
      "first_by", first_by,
      "the run is refused before its first step if no evaluation takes place in so many steps; unset: it is not",
      at_least(1).at_most(max_total));
  field("at_start", at_start, "evaluate before the first step too; this evaluation selects no model");
  field("batch_size", batch_size, "samples per rank and batch; unset: as in training",
        at_least(1).at_most(max_count));
  field("max_samples", max_samples,
        "evaluate so many of the validation samples, at equal distances in their file; unset: all",
        at_least(1).at_most(max_total));
  field("sanity_steps", sanity_steps,
        "batches per rank that are evaluated before training starts, to find mistakes early; not recorded",
        at_least(0).at_most(max_count));
  field(
      "by_class", by_class,
      "log precision, recall and F1 of each class or type of span with each evaluation, as `stretto test` does");
  field(
      "async", async,
      "evaluate snapshots of the weights in a process of its own while training continues; the metrics take effect at the next evaluation");
  field(
      "samples", samples,
      fmt::format(
          "{}: texts that the model continues at each evaluation, by at most 64 of the most probable tokens, for the log, texts.jsonl and the report: [\"Once upon\"]",
          tasks_with([](const TaskKind& kind) { return kind.writes_texts; })),
      may_change_on_resume());
}

void EarlyStoppingConfig::fields(settings::Fields& field) {
  field("patience", patience,
        "evaluations without improvement after which the run ends; 1: at the first; unset: never",
        at_least(1).at_most(max_total));
  field("monitor", monitor, "metric of the evaluations, or train_loss; unset: checkpoint.monitor");
  field("mode", mode, "whether a smaller or a larger value is better; auto: min for losses, else max");
  field("min_delta", min_delta, "smallest change that counts as an improvement", at_least(0));
  field("stopping_threshold", stopping_threshold, "end when the metric is better than this");
  field("divergence_threshold", divergence_threshold, "end when the metric is worse than this");
  field(
      "check_finite", check_finite,
      "with one of the above: if the metric is not finite, end with the best model so far; off: that is an error");
}

void TrackConfig::fields(settings::Fields& field) {
  log_every.declare(field, "log_every", "interval between two log lines");
  field(
      "throughput_steps", throughput_steps,
      "samples and tokens per second are means over the last so many steps; unset: over all since the run began, or since the last evaluation",
      at_least(1).at_most(max_count));
  field("progress", progress,
        "auto: one updated line on a terminal, else log lines; line: log lines; off: none");
  field("trackers", trackers, "where metrics are written: " + describe_trackers(), one_of(tracker_names()));
  field(
      "logging_dir", logging_dir,
      "folder in which csv and tensorboard write, in a folder named run_name, instead of the output folder; or the URL of an MLflow server, instead of MLFLOW_TRACKING_URI");
  field("experiment", experiment,
        "experiment of an MLflow server; unset: MLFLOW_EXPERIMENT_NAME, or Default");
  field(
      "run_name", run_name,
      "name of the run on an MLflow server, and of its folder in logging_dir; unset: that of the output folder");
  field("tags", tags, "tags of the run on an MLflow server, each KEY=VALUE");
  histograms.declare(
      field, "histograms",
      "interval in steps or epochs at which tensorboard gets the distribution of each weight and, except in manual optimization, of each gradient");
}

}  // namespace stretto
