#include "stretto/config/recipe.h"

#include <algorithm>
#include <tuple>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/model_rule.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/outline.h"
#include "stretto/optim_config/optimizer_registry.h"
#include "stretto/optim_config/schedule_registry.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/rule.h"
#include "stretto/strategy/sharding.h"
#include "stretto/track/registry.h"

// The declaration of every setting: key, member, help, range or choices. Defaults are the structs'.
namespace stretto {

using settings::above;
using settings::at_least;
using settings::matches;
using settings::may_change_on_resume;
using settings::one_of;

namespace {

// Limits that keep sizes, and their multiples, within 64 bits.
constexpr double max_count = 1e6;
constexpr double max_total = 1e9;

// A program may declare new sections, and its own sections model, tokenizer and data, which stretto then does
// not read.
void require_free_name(const std::string& key, const std::vector<settings::Field>& taken) {
  const bool is_programs = key == "model" || key == "tokenizer" || key == "data";
  const bool is_taken = std::ranges::find(taken, key, &settings::Field::key) != taken.end();
  if (is_programs || !is_taken) return;
  throw ConfigError(
      "this program declares the setting \"{}\", which is reserved by stretto; a program may declare model, tokenizer, data and new names",
      key);
}

// "ddp all; zero1 its part of the optimizer's state; ..."
std::string describe_strategies() {
  std::string text;
  for (const Sharding& row : shardings())
    text +=
        fmt::format("{}{}{}{}", text.empty() ? "" : "; ", row.name, row.help.empty() ? "" : " ", row.help);
  return text;
}

// "; unset with task question-answering: 384"
std::string describe_max_lengths() {
  std::string text;
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.max_length) text += fmt::format("; unset with task {}: {}", kind.name, *kind.max_length);
  return text;
}

// "sequence_tagger"
std::string describe_new_sections() {
  std::vector<std::string> sections;
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.new_model) sections.push_back(kind.new_model->section);
  return fmt::format("{}", fmt::join(sections, ", "));
}

// Makes a setting apply only under strategies that have `property`.
settings::Rule for_strategies(const settings::Rule& rule, const TrainingConfig& training,
                              bool (*property)(const Sharding&)) {
  const std::string names = strategies_with(property);
  return rule.applies_if([&training, property] { return property(find_sharding(training.strategy)); },
                         (names.find(' ') == names.npos ? "strategy " : "strategies ") + names);
}

}  // namespace

void ModelConfig::fields(settings::Fields& field) {
  field(
      "path", path,
      "model folder in Hugging Face layout to start from: config.json and model.safetensors; or the name (owner/name) of a model that `stretto pull` has fetched");
  const std::vector<std::string> new_types = new_model_types(), decoders = bundled_decoders();
  field(
      "config", config,
      fmt::format(
          "instead of path: a config.json, for a model with random weights, or its keys as a section ({}); one of model_type {} needs no vocabulary: it is made from data.train",
          fmt::join(decoders, ", "), fmt::join(new_types, " or ")));
  field(
      "type", type,
      fmt::format(
          "with config: its model_type; {}, instead of path and config: a new model with the settings of its section ({})",
          fmt::join(new_types, " or "), describe_new_sections()),
      one_of(model_types()).checked_later());
  field("dropout", dropout, "overrides every dropout probability of the model's config.json",
        at_least(0).below(1));
}

void TokenizerConfig::fields(settings::Fields& field) {
  field(
      "path", path,
      "folder with tokenizer.json, vocab.txt, vocab.json, sentencepiece.bpe.model or tokenizer.model; unset: model.path");
  field("lowercase", lowercase,
        "lower-case the text, where there is only a vocab.txt; unset: inferred from the vocabulary");
  field(
      "add_prefix_space", add_prefix_space,
      fmt::format(
          "byte-level BPE: put a space in front of each text; unset: as the tokenizer's files say, with task {} true",
          tasks_with([](const TaskKind& kind) { return kind.splits_words; })));
}

void DataConfig::fields(settings::Fields& field) {
  field(
      "train", train,
      "training samples: .tsv, .csv or .jsonl; CoNLL or .jsonl for tags; SQuAD's .json or .jsonl for questions");
  field(
      "mixture", mixture,
      fmt::format(
          "instead of train, with task {}: text files and corpora with weights, as in [wiki=0.7, books.txt=0.3], which are the shares of their blocks among those of an epoch",
          tasks_with([](const TaskKind& kind) { return kind.reads_corpora; })));
  field("validation", validation, "samples that are evaluated during training", may_change_on_resume());
  field(
      "validation_split", validation_split,
      "instead of validation: the part of the training samples to evaluate and not to train on, drawn by training.seed with the same share of each label",
      above(0).below(1));
  field("test", test, "samples for `stretto test`", may_change_on_resume());
  const settings::Rule most = at_least(1).at_most(max_total);
  const auto first = [](const char* file) {
    return fmt::format("read only the first so many texts, sentences or questions of {}; unset: all", file);
  };
  field("max_train_samples", max_train_samples, first("train"), most);
  field("max_validation_samples", max_validation_samples, first("validation"), most.may_change_on_resume());
  field("max_test_samples", max_test_samples, first("test"), most.may_change_on_resume());
  field(
      "text", text,
      "name of the text column, in CoNLL files the number of the token column; unset: inferred from the header or layout of the file");
  field("text_pair", text_pair, "name of the column of the second text, for tasks on pairs");
  field(
      "label", label,
      "name of the label column, in CoNLL files the number of the tag column; unset: inferred from the header or layout of the file");
  field("encoding", encoding, "how the bytes of the files are read; unset: utf-8, which refuses others",
        one_of({"utf-8", "utf-8-replace", "latin-1"}));
  field(
      "max_length", max_length,
      "maximum tokens per sample, special tokens included; longer texts are truncated, sentences and contexts of the other tasks split into windows" +
          describe_max_lengths(),
      at_least(2).at_most(max_count));
  field(
      "pad_to_multiple_of", pad_to_multiple_of,
      "packed batches are padded at their end to a multiple of so many tokens, so that the shapes of matmuls recur; 1: not at all",
      at_least(1).at_most(4096).may_change_on_resume());
  field("cache", cache,
        "folder in which token ids are cached between runs; unset: cache/ in the output folder",
        may_change_on_resume());
}

void MeshConfig::fields(settings::Fields& field) {
  field("dp", dp,
        "ranks, or groups of tp ranks, that train on different samples; auto: the number of ranks / tp",
        matches("auto|[1-9][0-9]{0,5}", "a number of ranks, or auto"));
  field("tp", tp,
        "ranks among which each layer of the model is divided (tensor parallelism), neighbours on one host",
        at_least(1).at_most(max_count));
  for (const auto& [name, size, what] :
       {std::tuple("pp", &pp, "stages of a pipeline"), {"cp", &cp, "ranks that divide each sequence"}})
    field(name, *size, what, at_least(1).at_most(1));
  field(
      "sequence_parallel", sequence_parallel,
      "the tp ranks of a layer also divide the rows of norms, dropout and residuals: less memory, the same results; with tp above 1");
}

std::optional<int64_t> MeshConfig::data_ranks() const { return dp == "auto" ? std::nullopt : parse_int(dp); }

void TrainingConfig::fields(settings::Fields& field) {
  field("epochs", epochs, "number of passes over the training samples; 2.5: the last one ends in its middle",
        above(0).at_most(max_count));
  field("max_steps", max_steps, "total number of optimizer steps; overrides epochs",
        at_least(1).at_most(max_total));
  field("max_samples", max_samples,
        "train on so many of the training samples, at equal distances in their file; unset: all",
        at_least(1).at_most(max_total));
  field(
      "fast_dev_run", fast_dev_run,
      "to see whether everything works: train so many steps, evaluate as many batches, in <output>/fast_dev_run, without checkpoints, trackers and resuming",
      at_least(1).at_most(max_count).may_change_on_resume());
  field(
      "steps_this_run", steps_this_run,
      "optimizer steps after which this command saves its state and ends; the same command then continues; schedules span all steps",
      at_least(1).at_most(max_total).may_change_on_resume());
  field("max_time", max_time,
        "time after which the run ends as after its last step, summed over its resumed parts",
        duration_rule().may_change_on_resume());
  field("batch_size", batch_size,
        "samples per rank and micro-batch; unset: computed from the other sizes, or 32",
        at_least(1).at_most(max_count).may_change_on_resume());
  field(
      "global_batch_size", global_batch_size,
      "samples per optimizer step over all ranks = batch_size x world_size x grad_accumulation_steps; any two of the three determine the third",
      at_least(1).at_most(max_total).may_change_on_resume());
  field("grad_accumulation_steps", grad_accumulation_steps,
        "micro-batches per optimizer step; unset: computed from the other sizes, or 1",
        at_least(1).at_most(max_count).may_change_on_resume());
  field("max_tokens", max_tokens,
        "maximum tokens per rank and micro-batch, instead of batch_size and global_batch_size",
        at_least(1).at_most(max_total).may_change_on_resume());
  field("max_grad_norm", max_grad_norm,
        "maximum global gradient norm; larger gradients are clipped to it; 0: no clipping", at_least(0));
  field(
      "max_grad_value", max_grad_value,
      "maximum absolute value of each element of the gradient, applied before max_grad_norm; unset: no limit",
      above(0));
  field(
      "precision", precision,
      "data type of forward and backward; gradients and master weights are fp32, or fp64 with fp64 (also Lightning's names, such as bf16-mixed)",
      settings::Rule{}.or_spelled(precision_spellings()).refusing(refused_precisions()));
  field("strategy", strategy,
        "what each rank holds, optionally with the precision (zero2-bf16): " + describe_strategies(),
        may_change_on_resume());
  field("mesh", mesh, "how the ranks share the work", may_change_on_resume());
  field("seed", seed, "seed of the sample order, of dropout and of new weights", at_least(0));
  field("device", device, "auto: CUDA if there is a GPU per rank, else the CPU", may_change_on_resume());
  field(
      "backend", backend,
      "communication back end; auto: NCCL on GPUs; on CPUs shared memory within a host and TCP between hosts; tcp, gloo: these only, also within a host; mpi: the MPI library that has started the ranks (mpirun, srun --mpi)",
      one_of({"auto", "tcp", "gloo", "mpi"}).may_change_on_resume());
  field(
      "kernels", kernels,
      "kernels of attention, norms and activations in a training step on CPU: fast (stretto's fused kernels) or reference (ATen's operators, for comparison)",
      may_change_on_resume());
  field(
      "products", products,
      "matmul library on CPU; auto: the fastest for the shapes of the model, measured once per processor; else aten, onednn (oneDNN also in fp32), mkl (MKL's bf16 weight gradients) or stretto (its own, with AVX-512), where it is usable",
      may_change_on_resume());
  field(
      "deterministic", deterministic,
      "same bits for any number of ranks, hosts and strategy, with the same global_batch_size and batch_size: gradients of micro-batches are summed in an order that does not depend on the ranks, each rank has whole gradients, and uses one thread (on CPU)");
  field("bucket_mb", bucket_mb, "maximum size of a gradient bucket, in MiB", above(0).may_change_on_resume());
  field(
      "shared_parameters", shared_parameters,
      fmt::format(
          "auto: under {} the ranks of one host compute with one copy of the parameters, in memory that they share; off: as between hosts, each rank has a copy, or under {} gathers the parameters of one block at a time",
          strategies_with(shards_optimizer), strategies_with(shards_parameters)),
      may_change_on_resume());
  field("dp_shard", dp_shard,
        fmt::format("under {}: ranks that together hold one copy of the model; unset: the ranks of each host",
                    strategies_with(is_hybrid)),
        for_strategies(at_least(1).at_most(max_count).may_change_on_resume(), *this, is_hybrid));
  field(
      "reshard_after_forward", reshard_after_forward,
      fmt::format(
          "under {}, where parameters are gathered: whether those of a block are released after its forward and gathered again for its backward; false: they are kept until then, which takes the memory of all blocks and sends a third less",
          strategies_with(shards_parameters)),
      for_strategies(may_change_on_resume(), *this, shards_parameters));
  field(
      "wrap_min_parameters", wrap_min_parameters,
      fmt::format(
          "under {}: blocks of the model with fewer parameters belong to the block around them, or outside of all blocks, whose parameters are gathered once per step",
          strategies_with(shards_gradients)),
      for_strategies(at_least(0).at_most(max_total).may_change_on_resume(), *this, shards_gradients));
  field(
      "offload_optimizer", offload_optimizer,
      "existing folder, on a disk of each host, for the optimizer's state, of which a step reads and writes one part at a time; auto: the output folder; unset: in memory",
      may_change_on_resume());
  field(
      "offload_parameters", offload_parameters,
      fmt::format(
          "under {}: existing folder, on a disk of each host, for the parameters of blocks that do not compute; auto: the output folder; unset: in memory",
          strategies_with(shards_parameters)),
      for_strategies(may_change_on_resume(), *this, shards_parameters));
  field(
      "activation_checkpointing", activation_checkpointing,
      "activations of every n-th block of the model are computed again in backward instead of kept, which takes less memory and more time; 1: of all blocks; 0: of none",
      at_least(0).at_most(max_count).may_change_on_resume());
  field("shuffle", shuffle, "shuffle the training samples in each epoch");
  field(
      "on_nonfinite", on_nonfinite,
      "action when the loss or a gradient is not finite: stop; skip the step; or rollback to the newest checkpoint, with a lower learning rate");
  field("on_spike", on_spike,
        "action when the loss or the gradient norm exceeds spike_factor times its running mean");
  field("spike_factor", spike_factor, "multiple of the running mean that counts as a spike", above(1));
  field("rollback_lr_factor", rollback_lr_factor, "factor of the learning rate at each rollback",
        above(0).at_most(1));
}

void OptimizerConfig::fields(settings::Fields& field) {
  Choice::fields(field);
  field(
      "scale_lr", scale_lr,
      "multiply the learning rate by global_batch_size / base_batch_size (linear) or by its square root (sqrt)");
  field("base_batch_size", base_batch_size, "with scale_lr: the global batch size for which lr is given",
        at_least(1).at_most(max_total));
}

OptimizerConfig::OptimizerConfig()
    : Choice(optim::optimizer_kinds(), "AdamW",
             "optimizer; its settings have the names of PyTorch's arguments") {}

void SchedulerConfig::fields(settings::Fields& field) {
  Choice::fields(field);
  field("num_warmup_samples", num_warmup_samples,
        "with types that have a warm-up, instead of num_warmup_steps: training samples until lr is reached",
        at_least(0).at_most(max_total));
}

SchedulerConfig::SchedulerConfig()
    : Choice(
          optim::schedule_kinds(), "LinearWithWarmup",
          "schedule of the learning rate; its settings have the names of PyTorch's and transformers' arguments") {
}

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

void ParametersConfig::fields(settings::Fields& field) {
  field("freeze", freeze, "patterns of parameters that are not trained: [\"embeddings.*\"]");
  field("lr_factors", lr_factors,
        "factors of the learning rate by pattern, the first that matches: [\"head.*=3\", \"encoder.*=0.5\"]",
        settings::matches("[^=]+=(?:[0-9]{1,9}\\.?[0-9]{0,18}|\\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?",
                          "a pattern and a factor: head.*=3"));
  field(
      "weight_decay", weight_decay,
      "patterns of parameters to which the optimizer's weight_decay applies although they are biases or weights of norms");
  field("no_weight_decay", no_weight_decay, "patterns of further parameters to which it does not apply");
  field(
      "layer_decay", layer_decay,
      "factor of the learning rate from each block of the model to the one below: the last block has it once, the first block of n has layer_decay^n, the embeddings once more; what follows the blocks has the full rate",
      above(0).at_most(1));
}

void LossScaleConfig::fields(settings::Fields& field) {
  field("init_scale", init_scale, "what the loss is multiplied by at first", above(0));
  field("growth_factor", growth_factor,
        "factor of the scale after growth_interval steps without an overflow of the gradients", above(1));
  field("growth_interval", growth_interval, "steps without an overflow until the scale grows",
        at_least(1).at_most(max_total));
  field("backoff_factor", backoff_factor, "factor of the scale when gradients overflow; that step is skipped",
        above(0).below(1));
  field("hysteresis", hysteresis, "overflows until the scale is lowered, counted from its last growth",
        at_least(1).at_most(max_count));
  field("min_scale", min_scale,
        "the scale is not lowered below this; the run ends when gradients keep overflowing", above(0));
  field("dynamic", dynamic, "off: the scale stays init_scale");
}

void EmaConfig::fields(settings::Fields& field) {
  field(
      "decay", decay,
      "average the weights: average = decay x average + (1 - decay) x weights after each step; unset: no average",
      at_least(0).below(1));
  field("warmup", warmup,
        "use min(decay, (1 + step) / (10 + step)), so that the first weights are forgotten sooner");
  field("evaluate", evaluate, "evaluate and save the averaged weights; off: the last ones");
}
namespace {

std::string describe_trackers() {
  std::string text;
  for (const TrackerKind& kind : tracker_kinds())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", kind.name, kind.help);
  return text;
}

}  // namespace

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
  field("run_name", run_name, "name of the run on an MLflow server; unset: that of the output folder");
  field("tags", tags, "tags of the run on an MLflow server, each KEY=VALUE");
  histograms.declare(
      field, "histograms",
      "interval in steps or epochs at which tensorboard gets the distribution of each weight and, unless the strategy divides them, of each gradient");
}

bool ProgramFields::operator==(const ProgramFields& other) const {
  return settings::to_yaml(list) == settings::to_yaml(other.list);
}

std::optional<std::filesystem::path> offload_folder(const Recipe& recipe) {
  const auto& folder = recipe.training.offload_optimizer;
  return folder == in_output_folder ? recipe.output : folder;
}

std::optional<std::filesystem::path> parameter_folder(const Recipe& recipe) {
  const auto& folder = recipe.training.offload_parameters;
  return folder == in_output_folder ? recipe.output : folder;
}

TrackerSetup tracker_setup(const Recipe& recipe) {
  const TrackConfig& track = recipe.track;
  return {recipe.output, track.logging_dir, track.experiment, track.run_name, track.tags};
}

void Recipe::fields(settings::Fields& field) {
  field("task", task, "the task", one_of(task_kinds().names()));
  field("model", model, "the model to start from");
  field("tokenizer", tokenizer, "the tokenizer");
  field("data", data, "data files and their columns");
  task_settings.fields(field, task);
  field("training", training, "duration, batch sizes, precision, device");
  field("optimizer", optimizer, "the optimizer and its hyperparameters");
  field("scheduler", scheduler, "the learning rate schedule");
  field("loss_scale", loss_scale,
        "factor of the loss with precision fp16, so that small gradients stay in its range");
  field("parameters", parameters, "settings of parameters by name: frozen, learning rate, weight decay");
  field("ema", ema, "exponential moving average of the weights");
  field("checkpoint", checkpoint, "which model is kept; when the run is saved for resuming",
        may_change_on_resume());
  field("evaluate", evaluate, "evaluation during training", may_change_on_resume());
  field("early_stopping", early_stopping, "when a run ends before its last step", may_change_on_resume());
  field("track", track, "progress and metrics", may_change_on_resume());
  field("output", output, "the run folder: logs, metrics, checkpoints, the trained model",
        may_change_on_resume());
  field(
      "resume", resume,
      "auto: from the newest checkpoint in the run folder, if there is one; true: as auto, but it is an error if there is none; false: it is an error if there is one; or the folder of a checkpoint",
      may_change_on_resume());
  for (const settings::Field& own : program.list) {
    require_free_name(own.key, field.list());
    field.put(own);
  }
}

}  // namespace stretto
