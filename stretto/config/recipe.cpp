#include "stretto/config/recipe.h"

#include "stretto/config/rule.h"

// The one declaration of every setting: key, place in the struct, help, what it accepts. Defaults are the
// structs'.
namespace stretto {

using config::above;
using config::at_least;
using config::one_of;

namespace {

// Keeps products of sizes within 64 bits.
constexpr double max_count = 1e6;
constexpr double max_total = 1e9;

}  // namespace

void ModelConfig::fields(config::Fields& field) {
  field("path", path, "folder in Hugging Face layout to start from: config.json and model.safetensors");
  field("config", config, "instead of path: a config.json alone, for a model with random weights");
  field("dropout", dropout, "replaces every dropout probability of the model's config.json",
        at_least(0).below(1));
}

void TokenizerConfig::fields(config::Fields& field) {
  field("path", path, "folder with tokenizer.json, or with vocab.txt; unset: model.path");
  field("lowercase", lowercase,
        "for a vocab.txt alone: lower-case the text; unset: told from the vocabulary");
}

void DataConfig::fields(config::Fields& field) {
  field("train", train, "samples to train on: a .tsv, .csv or .jsonl file");
  field("validation", validation, "samples to evaluate on while training");
  field("test", test, "samples for `stretto test`");
  field("text", text, "name of the column that holds the text; unset: found from the file's layout");
  field("text_pair", text_pair, "name of the column that holds the second text, for tasks on pairs");
  field("label", label, "name of the column that holds the label; unset: found from the file's layout");
  field("max_length", max_length, "tokens a sample, special tokens included; longer samples are cut",
        at_least(2).at_most(max_count));
  field("cache", cache, "folder that keeps tokenised ids between runs; unset: cache in the output folder");
}

void TrainingConfig::fields(config::Fields& field) {
  field("epochs", epochs, "passes over the training samples", at_least(1).at_most(max_count));
  field("max_steps", max_steps, "optimizer steps in all; when given, epochs is not looked at",
        at_least(1).at_most(max_total));
  field("batch_size", batch_size, "samples a rank and micro-batch; unset: from the other sizes, or 32",
        at_least(1).at_most(max_count));
  field(
      "global_batch_size", global_batch_size,
      "samples an optimizer step over all ranks = batch_size x ranks x grad_accumulation_steps; any two of the three give the third",
      at_least(1).at_most(max_total));
  field("grad_accumulation_steps", grad_accumulation_steps,
        "micro-batches an optimizer step; unset: from the other sizes, or 1", at_least(1).at_most(max_count));
  field("max_tokens", max_tokens,
        "tokens a rank and micro-batch, in place of batch_size and global_batch_size",
        at_least(1).at_most(max_total));
  field("max_grad_norm", max_grad_norm, "gradients are scaled down to this global norm; 0: never",
        at_least(0));
  field("precision", precision,
        "of the model's computation; gradients and master weights are fp32, or fp64 with fp64",
        one_of({"fp32", "bf16", "fp64"}));
  field("strategy", strategy, "how ranks share the work, optionally with the precision: ddp, ddp-bf16, ...");
  field("seed", seed, "of the order of samples, of dropout and of new weights", at_least(0));
  field("device", device, "auto: CUDA where there is a GPU for each rank", one_of({"auto", "cpu", "cuda"}));
  field(
      "backend", backend,
      "what ranks talk through; auto: NCCL between GPUs; on CPUs shared memory between the ranks of a host, and Gloo between hosts; gloo: Gloo alone",
      one_of({"auto", "gloo"}));
  field(
      "kernels", kernels,
      "how a training step on CPU computes attention, norms and activations: by stretto's fused kernels (fast), or by ATen's operators, to compare them (reference)",
      one_of({"fast", "reference"}));
  field("bucket_mb", bucket_mb, "largest piece of gradients reduced at once, in MiB", above(0));
  field("shuffle", shuffle, "draw the training samples in a new order each epoch");
  field(
      "on_nonfinite", on_nonfinite,
      "when a loss or gradient is not finite: stop; skip the step; or go back to the newest checkpoint (rollback), with a lower rate",
      one_of({"stop", "skip", "rollback"}));
  field("on_spike", on_spike, "the same when the loss or gradient norm is spike_factor times the usual",
        one_of({"off", "stop", "skip", "rollback"}));
  field("spike_factor", spike_factor, "how many times the running mean is a spike", above(1));
  field("rollback_lr_factor", rollback_lr_factor, "by which each rollback multiplies the learning rate",
        above(0).at_most(1));
}

void OptimizerConfig::fields(config::Fields& field) {
  field("type", type, "which optimizer; its settings are named as PyTorch's arguments",
        one_of({"AdamW", "SGD"}));
  field("lr", lr, "peak learning rate", at_least(0));
  field("weight_decay", weight_decay, "not applied to biases and norm weights", at_least(0));
  field("betas", betas, "decay of the averages of gradient and squared gradient",
        at_least(0).below(1).used_with("type", type, {"AdamW"}));
  field("eps", eps, "added to the denominator", at_least(0).used_with("type", type, {"AdamW"}));
  field("momentum", momentum, "momentum factor", at_least(0).used_with("type", type, {"SGD"}));
  field("dampening", dampening, "dampening of the momentum", config::Rule{}.used_with("type", type, {"SGD"}));
  field("nesterov", nesterov, "Nesterov momentum", config::Rule{}.used_with("type", type, {"SGD"}));
}

void SchedulerConfig::fields(config::Fields& field) {
  field("type", type, "LinearWithWarmup: up to lr, then down to 0; Constant: lr throughout",
        one_of({"LinearWithWarmup", "Constant"}));
  field("num_warmup_steps", num_warmup_steps, "optimizer steps until lr is reached",
        at_least(0).at_most(max_total).used_with("type", type, {"LinearWithWarmup"}));
  field("warmup_ratio", warmup_ratio, "the same as a part of all steps; give one of the two",
        at_least(0).below(1).used_with("type", type, {"LinearWithWarmup"}));
}

void CheckpointConfig::fields(config::Fields& field) {
  field("monitor", monitor,
        "metric whose best model is kept: one of the task's, or loss; unset: the task's main metric");
  field("mode", mode,
        "whether the best is the smallest or the largest; auto: smallest for loss, else largest",
        one_of({"auto", "min", "max"}));
  field(
      "every", every,
      "when the state of the run is saved for resuming: after so many steps (500), epochs (1ep) or minutes (10m, also 30s, 2h), and at the end; never");
  field("keep_last", keep_last, "how many checkpoints are kept, the newest ones; 0: all",
        at_least(0).at_most(max_count));
  field("keep_best", keep_best, "and so many of the best by monitor", at_least(0).at_most(max_count));
  field("keep_every", keep_every, "and those after every so many steps", at_least(1).at_most(max_total));
  field("async", async, "write beside training, from a copy in memory");
  field("when_busy", when_busy,
        "a checkpoint that comes while another is written waits for it, or is left out (skip)",
        one_of({"wait", "skip"}));
  field("accept_changes", accept_changes,
        "settings that may differ from those of the run that is resumed, as [optimizer.lr, training.epochs]");
}

void EvaluateConfig::fields(config::Fields& field) {
  field("every", every, "when the validation samples are evaluated", one_of({"epoch", "never"}));
  field("batch_size", batch_size, "samples a rank at once; unset: as in training",
        at_least(1).at_most(max_count));
}

void TrackConfig::fields(config::Fields& field) {
  field("log_every", log_every, "optimizer steps between two logged lines", at_least(1).at_most(max_total));
  field("progress", progress, "auto: a live line on a terminal, plain lines elsewhere; line: plain lines",
        one_of({"auto", "line", "off"}));
  field("trackers", trackers,
        "what is kept in the output folder: metrics.jsonl, and TensorBoard's event files in tensorboard/",
        one_of({"jsonl", "tensorboard"}));
}

void Recipe::fields(config::Fields& field) {
  field("task", task, "what the model learns", one_of({"text-classification"}));
  field("model", model, "where the model comes from");
  field("tokenizer", tokenizer, "how text becomes ids");
  field("data", data, "files and how they are read");
  field("training", training, "how long, how much at once, on what");
  field("optimizer", optimizer, "the update rule");
  field("scheduler", scheduler, "how the learning rate moves");
  field("checkpoint", checkpoint, "which model is kept, and when the run is saved for resuming");
  field("evaluate", evaluate, "evaluation while training");
  field("track", track, "what is shown and logged");
  field("output", output, "the run folder: logs, metrics, checkpoints, the trained model");
  field(
      "resume", resume,
      "auto: from the newest checkpoint in the run folder, where there is one; true: there must be one; false: there must be none; or the folder of a checkpoint");
}

}  // namespace stretto
