#include <tuple>

#include "stretto/base/strings.h"
#include "stretto/config/recipe.h"
#include "stretto/config/sections/limits.h"
#include "stretto/settings/rule.h"
#include "stretto/strategy/sharding.h"

// The section training: duration, batch sizes, precision, and how ranks share the work.
namespace stretto {

using settings::above;
using settings::at_least;
using settings::matches;
using settings::may_change_on_resume;
using settings::one_of;

namespace {

// "ddp all; zero1 its part of the optimizer's state; ..."
std::string describe_strategies() {
  std::string text;
  for (const Sharding& row : shardings())
    text +=
        fmt::format("{}{}{}{}", text.empty() ? "" : "; ", row.name, row.help.empty() ? "" : " ", row.help);
  return text;
}

// Makes a setting apply only under strategies that have `property`.
settings::Rule for_strategies(const settings::Rule& rule, const TrainingConfig& training,
                              bool (*property)(const Sharding&)) {
  const std::string names = strategies_with(property);
  return rule.applies_if([&training, property] { return property(find_sharding(training.strategy)); },
                         (names.find(' ') == names.npos ? "strategy " : "strategies ") + names);
}

}  // namespace

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
      "to see whether everything works: train so many steps (true: 1; 0 or false: the whole run), evaluate as many batches, in <output>/fast_dev_run, without checkpoints, trackers and resuming",
      at_least(0).at_most(max_count).or_spelled({{"true", "1"}, {"false", "0"}}).may_change_on_resume());
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

}  // namespace stretto
