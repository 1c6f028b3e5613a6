#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/comm/group.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/average.h"
#include "stretto/parallel/data_parallel.h"
#include "stretto/parallel/gathered_units.h"
#include "stretto/parallel/reducer.h"
#include "stretto/strategy/sharding.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/tensor/state.h"

namespace stretto {

struct EngineOptions {
  std::string strategy = "ddp";  // a row of sharding.h
  Precision precision = Precision::fp32;
  double bucket_bytes = 25 * 1024 * 1024;  // largest gradient bucket
  // If the optimizer's state is sharded: a reduction leaves each rank the gradients of its shard only, and zeros elsewhere.
  // Off: strategies that replicate gradients give all of them to every rank.
  bool gradients_to_owners = true;
  // If the optimizer's state is sharded and the ranks share memory: they compute with one copy of the parameters in it. A
  // write to a parameter by any rank is then a write for all ranks.
  bool shared_parameters = true;
  std::vector<ParameterGroup> groups = {};  // settings of parameters by name pattern
  // The gradients of sparse embedding tables are reduced row by row, and the rows stepped one by one if strategy and
  // optimizer support it. Off: weights are up to date after every step, without catch_up(). An optimizer that
  // keeps_idle_rows() steps rows in any case.
  bool lazy_rows = true;
  // > 0: micro-batches of this rank per step, the same on all ranks, which are 1, 2, 4, ...: all sums over micro-batches and
  // ranks are taken in an order that depends on all their number only. REQUIRES gradients that no strategy shards.
  int64_t fixed_order = 0;
  // Keeps an exponential moving average of the weights, sharded like the master weights. Requires an optimizer.
  std::optional<AverageOptions> average = {};
  // If parameters are gathered: Sharding::reshard_after_forward.
  bool reshard_after_forward = true;
  int64_t min_unit_elements = 0;  // blocks with fewer parameters are no units (collect_tensors)
  // A folder: the optimizer's state lies in files there (tensor/file_memory.h) and is in memory during the step only. "": in
  // memory.
  std::filesystem::path offload_optimizer = {};
  // Called with the names of some parameters before their values are read for the first time. A module that loads or
  // initialises them then, instead of in its constructor, is never in memory as a whole where a strategy shards it. Every rank
  // calls it with the same names in the same order, each name once.
  std::function<void(std::span<const std::string>)> load_parameters = {};
  OptionNames names = {};
};

// Memory for the trainable parameters, in bytes per rank.
struct EngineMemory {
  int64_t master = 0;
  int64_t gradients = 0;
  int64_t compute = 0;  // 0 if the model computes with the master weights
  int64_t optimizer = 0;
  int64_t optimizer_in_files = 0;  // not counted in total()
  int64_t average = 0;             // of the weights
  bool parameters_are_shared =
      false;  // then `compute`, or `master` where there is none, is this rank's part of one copy
  int64_t total() const { return master + gradients + compute + optimizer + average; }
};

// Trains a module on several ranks: owns the module's tensors, their memory (arena), gradient reduction, norm and
// clipping, the optimizer step, and the state of all of these. Trainer and Lite drive it; the strategy is a row of the
// table in sharding.h. Every rank must make the same calls in the same order. Not thread-safe.
//
//   engine.backward(loss.sum, /*last_micro_batch=*/true);   gradients of all ranks are summed meanwhile
//   engine.finish_reduction(totals);                        loss and count over all ranks
//   engine.step(rates, 1 / count);                          scales, updates, zeroes the gradients
class Engine {
 public:
  // Moves the module's parameters into an arena and broadcasts rank 0's parameters and buffers. The module must not be
  // moved or given further parameters afterwards. Without an optimizer, the caller steps the parameters. Collective.
  // Throws ConfigError for parameters that cannot be trained, and if `optimizer` does not support the strategy's
  // sharding.
  Engine(torch::nn::Module& module, const DataParallel& ranks, const EngineOptions& options,
         std::unique_ptr<optim::Optimizer> optimizer);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- backward: see reducer.h

  // Where gradients are sharded, those of every micro-batch are reduced.
  void backward(const Tensor& loss_sum, bool last_micro_batch);
  // Without any communication: gradients() and step() do not see the result before another backward reduces it.
  void backward_locally(const Tensor& loss_sum) { reducer_.backward(loss_sum, /*last=*/false); }
  void finish_reduction(std::span<double> totals = {});
  Reducer& reducer() { return reducer_; }

  // --- gradients, after finish_reduction()

  // L2 norm over all trainable parameters, the same on all ranks. Collective.
  double gradient_norm() const;
  // The first parameter whose gradient holds NaN or infinity, or "". Collective.
  std::string first_nonfinite() const;
  // Whether all gradients on this rank are finite, reduced or not.
  bool own_gradients_are_finite() const;
  // Those that this rank has, reduced: all, or its shard (EngineOptions::gradients_to_owners).
  Tensor gradients() const;
  void scale_gradients(double factor);
  void clamp_gradients(double limit);  // each element to [-limit, limit]
  void zero_gradients() { reducer_.zero_gradients(); }
  // Zeroes the gradients of all parameters but those for whose name `keeps` returns true, on every rank.
  void keep_gradients(const std::function<bool(const std::string& parameter)>& keeps);

  // --- the step

  // Updates the parameters with gradients multiplied by `grad_scale`, zeroes the gradients, and gathers the parameters
  // stepped by other ranks unless they are shared. Collective if the strategy shards. REQUIRES: an optimizer.
  void step(const optim::StepRates& rates, double grad_scale);
  // The same for an optimizer that reevaluates() its batch: `first` is of the gradients that are there. `again` zeroes nothing: it
  // runs forward, backward and finish_reduction().
  void step(const optim::StepRates& rates, const optim::Evaluation& first, const optim::Reevaluate& again);
  // Counts a step without updating parameters; zeroes the gradients.
  void skip_step();
  optim::Optimizer* optimizer() { return optimizer_.get(); }  // may be null
  int64_t steps_done() const { return optimizer_->steps_done(); }

  // Brings lazily stepped rows up to date. Call it before reading weights other than by lookup; add_model_state(),
  // weights() and compare_replicas() call it themselves.
  void catch_up();

  // Exchanges the weights and their average, for evaluating or saving it; exchange them back before the next backward.
  // Collective. REQUIRES: keeps_average().
  void swap_average();
  bool keeps_average() const { return average_.has_value(); }

  // Throws Error naming a parameter that was replaced or whose gradient was.
  void verify() const { arena_.verify(); }

  // Whether parameters are gathered block by block: then each forward is collective as well, and every rank must run it
  // equally often.
  bool gathers_parameters() const { return units_.has_value(); }

  // --- replicas

  // Throws DistributedError naming a rank whose parameters differ from rank 0's in any bit. Collective.
  void compare_replicas();
  // Broadcasts rank 0's buffers (running statistics of norms, ...). Collective.
  void synchronise_buffers();
  bool buffers_changed() const;  // on this rank, since the last synchronise_buffers()

  // --- state

  // Adds entries "<prefix>.<parameter>" for parameters at master precision, frozen parameters and buffers, which refer
  // to live memory. Optimizer state is added by optim::Optimizer::add_state(). Broadcasts rank 0's buffers. Collective.
  void add_model_state(State& state, const std::string& prefix = "model");
  // Marks the entries of this engine and its optimizer in `state` that another rank holds as well and saves. Call it after
  // both have added theirs.
  void leave_copies_to_first(State& state) const;
  // Call it after checkpoint::load has filled the entries. Collective.
  void resume_model();

  // Parameters at master precision, frozen parameters and buffers by name, as saved in a model file. Views of live
  // memory unless they had to be gathered: then every rank has all of them in memory. Collective.
  NamedTensors weights();
  // The same on the first rank, and nothing on the others. What had to be gathered lies in a file without a name in `folder`
  // (tensor/file_memory.h), so that no rank needs memory for all; only if that is not possible, in memory. Collective.
  NamedTensors weights_at_first(const std::filesystem::path& folder);
  // The first trainable parameter whose weights hold NaN or infinity, or "". Collective.
  std::string first_nonfinite_weight();

  // --- properties

  const ModuleTensors& tensors() const { return tensors_; }
  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }
  const Sharding& sharding() const { return sharding_; }
  Precision precision() const { return options_.precision; }
  EngineMemory memory() const;
  // The lines printed at setup: sizes, dtypes, memory. `title` begins the first ("model"); `compute` names the compute
  // dtype.
  std::string describe(const std::string& title, const std::string& compute) const;

 private:
  void sum_over_replicas(const Tensor& values) const;
  void follow_step();
  void gather_shards(const Tensor& whole) const;
  void gather_at_first(const Tensor& whole, bool in_file) const;
  NamedTensors named(const Tensor& master) const;
  int64_t least_of_shards(int64_t parameter) const;
  std::string parameter_name(int64_t parameter) const;
  void share_parameters();
  Allocator optimizer_memory();
  void offload_state() const;
  std::vector<int64_t> buffer_versions() const;

  const EngineOptions options_;
  const Sharding sharding_;
  const DataParallel ranks_;
  ModuleTensors tensors_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  const ArenaOptions arena_options_;
  Arena arena_;
  std::optional<GatheredUnits> units_;  // if parameters are sharded and not shared
  Reducer reducer_;
  std::optional<WeightAverage> average_;
  std::vector<Tensor> offloaded_;               // the optimizer's state that lies in files
  std::vector<int64_t> synchronised_versions_;  // of the buffers after the last synchronisation
};

// While it lives, the module holds the averaged weights. Collective at both ends.
class AveragedWeights {
 public:
  // `use`: false does nothing.
  AveragedWeights(Engine& engine, bool use) : engine_(engine), used_(use && engine.keeps_average()) {
    if (used_) engine_.swap_average();
  }
  ~AveragedWeights() noexcept(false) {
    if (used_ && std::uncaught_exceptions() == exceptions_) engine_.swap_average();
  }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  Engine& engine_;
  bool used_;
  int exceptions_ = std::uncaught_exceptions();
};

// The factor that clips gradients of this norm to `max_norm`, as in torch's clip_grad_norm_: max_norm / (norm + 1e-6),
// or 1 if norm <= max_norm. max_norm 0: no limit.
double clip_scale(double norm, double max_norm);

}  // namespace stretto
