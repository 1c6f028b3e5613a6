#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>

#include <ATen/Parallel.h>

#include "stretto/base/clock.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/cluster/machine/machine.h"
#include "stretto/config/topology_request.h"
#include "stretto/data/global_batches.h"
#include "stretto/launch/launch.h"
#include "stretto/parallel/forecast.h"
#include "stretto/programs/arguments/recipe_handover.h"
#include "stretto/programs/stretto_rank/short_run.h"
#include "stretto/programs/stretto_rank/verbs.h"
#include "stretto/strategy/step_time.h"
#include "stretto/trainer/api/optimizer_plan.h"
#include "stretto/trainer/profile/reached_rows.h"

namespace stretto::rank {
namespace {

// Bytes in a file of /proc/self behind the two words.
int64_t bytes_in(const char* file, const char* own, const char* shared) {
  std::ifstream lines(fmt::format("/proc/self/{}", file));
  int64_t kib = 0, sum = 0;
  for (std::string word; lines >> word;) {
    if ((word == own || word == shared) && lines >> kib) sum += kib * 1024;
  }
  return sum;
}

// Bytes of this process's memory that are not backed by a file. What processes share is divided among them,
// where the system measures that.
int64_t memory_in_use() {
  const int64_t divided = bytes_in("smaps_rollup", "Pss_Anon:", "Pss_Shmem:");
  return divided > 0 ? divided : bytes_in("status", "RssAnon:", "RssShmem:");
}

// The measurements of a recipe on the ranks with the parts of one layer, which do not depend on the strategy.
struct Measured {
  ModelSizes sizes;         // of the first rank, which has the largest parts
  int64_t parameters = 0;   // that are trained, of whole tensors
  double step_seconds = 0;  // median, without the first step
  int64_t other_bytes = 0;  // per rank: frozen parameters, activations, libraries and their work memory
};

class Measurement : public Callback {
 public:
  // measured: the recipe of the measured steps. planned: the recipe of the job, with its batches.
  Measurement(const Recipe& measured, const TrainingConfig& planned, const BatchPlan& batch)
      : recipe_(measured), planned_(planned), batch_(batch) {}
  std::string name() const override { return "plan"; }
  bool reads_parameters() const override { return false; }

  void fit_start(FitContext& context) override {
    const OptimizerPlan plan = plan_of(recipe_, /*global_batch_size=*/0);
    const TrainingConfig& training = recipe_.training;
    const parallel::ModuleTensors tensors =
        parallel::collect_tensors(context.module.root(), plan.groups, training.wrap_min_parameters);
    ModelSizes& sizes = measured_.sizes;
    sizes = sizes_of(tensors, training.precision, *plan.optimizer);
    sizes.optimizer_in_files = training.offload_optimizer.has_value();
    sizes.parameters_in_files = training.offload_parameters.has_value();
    sizes.keeps_average = recipe_.ema.decay.has_value();
    // Whole gradients are summed.
    if (training.deterministic || training.mesh.tp > 1) sizes.tables = sizes.reached = 0;
    measured_.parameters = sizes.elements();
    if (training.mesh.tp > 1) measured_.parameters = elements_of(tensors);
    rows_.emplace(tensors.trainable, bytes_of(training.precision).master);
  }
  void step_end(FitContext&, const StepReport& report) override {
    seconds_.push_back(report.seconds);
    peak_ = std::max(peak_, memory_in_use());
  }
  void fit_end(FitContext& context) override {
    std::sort(seconds_.begin() + 1, seconds_.end());
    measured_.step_seconds = seconds_[seconds_.size() / 2];
    ModelSizes& sizes = measured_.sizes;
    if (sizes.tables > 0) sizes.reached = rows_->elements();
    const int64_t parameters =
        forecast_memory(sizes, find_sharding("ddp"), recipe_.training.precision, {}).total();
    const Tensor others = context.mesh.tensor_parallel().all_reduce(
        at::scalar_tensor(std::max<int64_t>(0, peak_ - parameters), at::kLong));
    measured_.other_bytes = others.item<int64_t>() / context.mesh.size(Axis::tp);
    if (sizes.tables > 0) sizes.reached = reached_by_job(context.samples);
    rows_.reset();
  }
  const Measured& measured() const { return measured_; }

 private:
  static int64_t elements_of(const parallel::ModuleTensors& tensors) {
    int64_t sum = 0;
    for (const parallel::NamedParameter& parameter : tensors.trainable)
      sum += count_elements(parameter.layout.global);
    return sum;
  }
  // Returns the samples of the planned job's first epoch, up to its last step. A job over more samples than
  // can be examined is assumed to reach all rows.
  int64_t reached_by_job(const data::Dataset& dataset) const {
    constexpr int64_t most_samples = 1 << 20;
    const bool stops_early = planned_.max_steps && batch_.global_batch_size > 0 &&
                             *planned_.max_steps < dataset.size() / batch_.global_batch_size;
    std::vector<int64_t> samples;
    if (stops_early) {
      const data::GlobalBatches batches(dataset, {.seed = static_cast<uint64_t>(planned_.seed),
                                                  .shuffle = planned_.shuffle,
                                                  .global_batch_size = batch_.global_batch_size});
      for (int64_t i = 0; i < *planned_.max_steps && std::ssize(samples) <= most_samples; ++i)
        std::ranges::copy(batches.batch(0, i).samples, std::back_inserter(samples));
    } else {
      samples.resize(static_cast<size_t>(std::min(dataset.size(), most_samples + 1)));
      std::iota(samples.begin(), samples.end(), 0);
    }
    if (std::ssize(samples) > most_samples) return measured_.sizes.tables;
    return rows_->elements_after(dataset, samples);
  }

  const Recipe& recipe_;
  const TrainingConfig& planned_;
  const BatchPlan& batch_;
  int64_t peak_ = 0;
  std::vector<double> seconds_;
  std::optional<trainer::ReachedRows> rows_;
  Measured measured_;
};

// The bytes per second that all cores copy together.
double copy_rate(int threads) {
  at::set_num_threads(threads);
  const Tensor source = at::ones({32 << 20}, at::kFloat), target = at::empty_like(source);
  double best = 0;
  for (int i = 0; i < 6; ++i) {
    const auto start = std::chrono::steady_clock::now();
    Tensor(target).copy_(source);
    best = std::max(best, static_cast<double>(source.nbytes()) / seconds_since(start));
  }
  return best;
}

// Returns the recipe for one data rank with the micro-batch of a data rank of the planned job.
Recipe of_one_rank(Recipe recipe, const BatchPlan& plan) {
  TrainingConfig& training = recipe.training;
  training.strategy = "ddp";
  training.dp_shard.reset();
  training.mesh.dp = "auto";
  training.global_batch_size.reset();
  if (!training.max_tokens) training.batch_size = plan.batch_size;
  training.grad_accumulation_steps = plan.grad_accumulation_steps;
  return recipe;
}

struct Row {
  std::string strategy;
  MemoryForecast memory;
  StepForecast step;
  int64_t per_rank = 0, per_host = 0;
  bool fits = false;
};

// Whether the job can use a strategy on the recipe's mesh.
bool can_use(const Sharding& row, const Recipe& recipe, const JobShape& job) {
  if (job.tp == 1) return true;
  TopologyRequest request = topology_request(recipe);
  request.strategy = row.name;
  try {
    resolve(request, equal_hosts(job.hosts(), job.ranks_per_host));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::vector<Row> forecast_rows(const Measured& measured, const Recipe& recipe, const JobShape& job,
                               const HardwareRates& rates, double memory) {
  const TrainingConfig& training = recipe.training;
  const Precision precision = training.precision;
  // The measured step includes the optimizer step on one data rank.
  const JobShape one = {.ranks = job.tp, .ranks_per_host = job.tp, .tp = job.tp};
  const double compute =
      std::max(0.0, measured.step_seconds -
                        forecast_step(measured.sizes, find_sharding("ddp"), precision, one, 0, rates).memory);
  std::vector<Row> rows;
  for (Sharding row : shardings()) {
    row.reshard_after_forward = training.reshard_after_forward;
    if (training.deterministic) row.gradients = Held::replicated;  // EngineOptions::fixed_order
    if (row.hybrid && job.hosts() == 1 && row.name != training.strategy) continue;  // fsdp
    if (!can_use(row, recipe, job)) continue;
    if (row.optimizer == Held::sharded && !measured.sizes.can_shard) continue;
    Row result = {.strategy = row.name,
                  .memory = forecast_memory(measured.sizes, row, precision, job),
                  .step = forecast_step(measured.sizes, row, precision, job, compute, rates)};
    result.per_rank = result.memory.total() + measured.other_bytes;
    result.per_host = result.per_rank * std::min(job.ranks, job.ranks_per_host);
    result.fits = static_cast<double>(result.per_host) <= memory;
    rows.push_back(std::move(result));
  }
  return rows;
}

nlohmann::ordered_json to_json(const Row& row, const Recipe& recipe, const JobShape& job) {
  const EngineMemory& bytes = row.memory.parameters;
  return {{"strategy", row.strategy},
          {"tp", job.tp},
          {"dp", job.data_ranks()},
          {"sequence_parallel", recipe.training.mesh.sequence_parallel},
          {"bytes_per_rank", row.per_rank},
          {"bytes_per_host", row.per_host},
          {"fits", row.fits},
          {"master", bytes.master},
          {"gradients", bytes.gradients},
          {"compute", bytes.compute},
          {"optimizer", bytes.optimizer},
          {"optimizer_in_files", bytes.optimizer_in_files},
          {"parameters_in_files", bytes.parameters_in_files},
          {"average", bytes.average},
          {"blocks", row.memory.step},
          {"step_seconds", row.step.total()},
          {"compute_seconds", row.step.compute},
          {"memory_seconds", row.step.memory},
          {"network_seconds", row.step.network},
          {"network_bytes_per_host", row.step.sent},
          {"bound", row.step.bound()}};
}

}  // namespace

void plan(const arguments::PlanArguments& arguments) {
  const Recipe whole = arguments::recipe_of_rank(arguments.recipe, Verb::train);
  const int ranks =
      arguments.recipe.launch.ranks > 0 ? arguments.recipe.launch.ranks : launch::default_ranks();
  const int hosts = std::max(1, arguments.recipe.launch.hosts.nodes);
  const BatchPlan batch = resolve(topology_request(whole), equal_hosts(hosts, ranks)).batch;
  const JobShape job = {.ranks = ranks * hosts,
                        .ranks_per_host = ranks,
                        .shard_ranks = static_cast<int>(whole.training.dp_shard.value_or(0)),
                        .shared_parameters = whole.training.shared_parameters == SharedParameters::automatic,
                        .tp = static_cast<int>(whole.training.mesh.tp),
                        .micro_batches = batch.grad_accumulation_steps};
  const machine::Machine machine = machine::read_machine();
  HardwareRates rates = {.cores = arguments.cores > 0 ? arguments.cores : machine.cores,
                         .network = arguments.network_gbit * 1e9 / 8};
  const double memory =
      arguments.memory_gib > 0 ? arguments.memory_gib * 1024 * 1024 * 1024 : machine.memory_available;
  const int threads_of_rank = std::max(1, rates.cores / job.ranks_per_host);
  at::set_num_threads(std::min(threads_of_rank, machine.cores));

  ShortRun run(of_one_rank(whole, batch), "plan", arguments.steps.value_or(6));
  const auto measurement = std::make_shared<Measurement>(run.recipe(), whole.training, batch);
  run.train({measurement});
  const Measured& measured = measurement->measured();
  if (measured.step_seconds == 0)
    throw ConfigError("plan: the data is used up before a second step; lower --steps");
  if (!run.is_first()) return;
  rates.memory = copy_rate(machine.cores);

  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Row& row : forecast_rows(measured, whole, job, rates, memory))
    rows.push_back(to_json(row, whole, job));
  const nlohmann::ordered_json report = {{"ranks", job.ranks},
                                         {"hosts", job.hosts()},
                                         {"cores_per_host", rates.cores},
                                         {"batch", describe_batch(batch, job.tp)},
                                         {"trainable_parameters", measured.parameters},
                                         {"measured_step_seconds", measured.step_seconds},
                                         {"other_bytes_per_rank", measured.other_bytes},
                                         {"memory_per_host", memory},
                                         {"strategies", rows}};
  write_file_atomic(arguments::plan_file(whole), report.dump());
}

}  // namespace stretto::rank
