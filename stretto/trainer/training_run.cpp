#include "stretto/trainer/training_run.h"

#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"
#include "stretto/data/split.h"
#include "stretto/nn/functional.h"
#include "stretto/parallel/phase.h"

namespace stretto {
namespace {

data::SamplerOptions sampler_options(const TrainingConfig& training, const BatchPlan& plan,
                                     const data::Dataset& dataset) {
  data::SamplerOptions options;
  options.seed = static_cast<uint64_t>(training.seed);
  options.shuffle = training.shuffle;
  options.group_by_length = dataset.pads();
  options.global_batch_size = std::max<int64_t>(1, plan.global_batch_size);
  if (training.max_tokens)
    options.max_tokens = *training.max_tokens * plan.ranks * plan.grad_accumulation_steps;
  return options;
}

// What the order of an epoch's samples depends on besides the recipe's seed.
nlohmann::json order_of(const data::SamplerOptions& options) {
  return {{"global_batch_size", options.max_tokens > 0 ? 0 : options.global_batch_size},
          {"max_tokens", options.max_tokens},
          {"group_by_length", options.group_by_length}};
}

// That of a saved place. Before group_by_length was noted, all batches were grouped.
nlohmann::json order_in(const nlohmann::json& place) {
  nlohmann::json order = place.at("order");
  if (!order.contains("group_by_length")) order["group_by_length"] = true;
  return order;
}

optim::ScheduleOptions schedule_options(const SchedulerConfig& scheduler, int64_t total_steps) {
  optim::ScheduleOptions options;
  options.type = scheduler.type;
  options.total_steps = total_steps;
  options.warmup_steps = scheduler.num_warmup_steps.value_or(static_cast<int64_t>(
      std::ceil(scheduler.warmup_ratio.value_or(0) * static_cast<double>(options.total_steps))));
  return options;
}

OptimizerPlan ask_for_plan(const Recipe& recipe, Module& module) {
  OptimizerPlan plan = module.configure_optimizers(plan_of(recipe));
  if (plan.optimizer == nullptr) throw ConfigError("configure_optimizers gave a plan without an optimizer");
  return plan;
}

void require_loss(const Loss& loss) {
  if (!loss.sum.defined() || loss.sum.numel() != 1) {
    throw ShapeError("training_step gave {} as loss; the sum over the batch is needed, one number",
                     loss.sum.defined() ? describe(loss.sum) : "no tensor");
  }
  if (!loss.sum.requires_grad()) {
    throw Error(
        "training_step gave a loss without a graph, from which nothing can be learnt: it was detached, read by item(), computed under NoGradGuard, or no trained parameter takes part in it");
  }
  if (!std::isfinite(loss.count) || loss.count < 0) {
    throw Error("training_step gave {} as the loss's count; it is the number of samples or tokens in the sum",
                loss.count);
  }
}

}  // namespace

TrainingRun::TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
                         at::Device device)
    : TrainingRun(recipe, module, dataset, group, device, ask_for_plan(recipe, module)) {}

TrainingRun::TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
                         at::Device device, OptimizerPlan plan)
    : training_(recipe.training),
      plan_(resolve_batch(recipe.training, group.size(), recipe.origins)),
      module_(module),
      dataset_(dataset),
      group_(group),
      device_(device),
      tensors_((module.root().to(device), collect_tensors(module.root(), plan.groups, *plan.optimizer))),
      arena_(tensors_.trained, parse_precision(recipe.training.precision), plain_memory(), group.allocator()),
      engine_(arena_, group, recipe.training.bucket_mb * 1024 * 1024),
      optimizer_(std::move(plan.optimizer)),
      sampler_(dataset.lengths(), sampler_options(recipe.training, plan_, dataset)),
      guard_(training_) {
  schedule_ = schedule_options(plan.scheduler, count_total_steps());
  at::NoGradGuard no_grad;
  for (auto& [name, tensor] : tensors_.constant) {
    if (!tensor.is_floating_point()) continue;
    tensor.set_data(tensor.to(compute_dtype(parse_precision(recipe.training.precision))));
  }
  engine_.synchronise_start(tensors_.constant);
  optimizer_->bind(arena_.buffers(), arena_.optimizer_ranges(), plain_memory());
  for (size_t table = 0; table < engine_.tables().size(); ++table) {
    engine_.tables()[table]->on_read(
        [this, table](std::span<const int64_t> rows) { optimizer_->catch_up(table, rows); });
  }
  module.root().train();
}

Loss TrainingRun::accumulate(const std::vector<int64_t>& batch, LoggedValues& logged) {
  const int64_t micro_steps =
      plan_.batch_size > 0 ? data::count_micro_steps(std::ssize(batch), group_.size(), plan_.batch_size)
                           : plan_.grad_accumulation_steps;
  StepContext context(group_, logged, std::ssize(batch) >= micro_steps * group_.size());
  context.forward = {.training = true,
                     .key = hash64(std::array<uint64_t, 2>{static_cast<uint64_t>(training_.seed),
                                                           static_cast<uint64_t>(epoch_)}),
                     .kernels = nn::parse_kernels(training_.kernels)};
  context.step = steps_done();
  context.epoch = epoch_;
  const auto mine = data::split_batch(batch, dataset_.lengths(), group_.size(), group_.rank(), micro_steps,
                                      dataset_.pads());
  Loss total = {at::zeros({}, at::TensorOptions(at::kDouble).device(device_)), 0};
  for (size_t micro = 0; micro < mine.size(); ++micro) {
    const bool last = micro + 1 == mine.size();
    if (mine[micro].empty()) {
      engine_.backward({}, last);
      continue;
    }
    const Batch micro_batch = [&] {
      RECORD_USER_SCOPE(phase::data);
      return make_batch(module_, dataset_, mine[micro]).to(device_);
    }();
    context.batch_count = micro_batch.count;
    const Loss loss = [&] {
      RECORD_USER_SCOPE(phase::forward);
      return module_.training_step(micro_batch, context);
    }();
    require_loss(loss);
    {
      RECORD_USER_SCOPE(phase::backward);
      engine_.backward(loss.sum, last);
    }
    total.sum += loss.sum.detach();
    total.count += loss.count;
  }
  return total;
}

double TrainingRun::clip_scale(double count, double norm) const {
  const double mean_norm = norm / count;
  const bool clips = training_.max_grad_norm > 0 && mean_norm > training_.max_grad_norm;
  // As torch's clip_grad_norm_: the limit over the norm plus a little.
  return clips ? training_.max_grad_norm / (mean_norm + 1e-6) / count : 1 / count;
}

// Which rank's own loss is not finite, and the first parameter whose reduced gradient is not.
std::string TrainingRun::find_culprit(const Loss& mine) const {
  std::string culprit;
  const auto losses = group_.all_gather_bytes(fmt::format("{}", mine.sum.item<double>()));
  for (size_t rank = 0; rank < losses.size(); ++rank) {
    const auto loss = parse_double(losses[rank]);
    if (loss && std::isfinite(*loss)) continue;
    culprit = fmt::format(" (first on rank {}", rank);
    break;
  }
  const std::string parameter = engine_.first_nonfinite();
  if (!parameter.empty()) {
    culprit += fmt::format("{}first in the gradient of {}", culprit.empty() ? " (" : ", ", parameter);
  }
  return culprit.empty() ? culprit : culprit + ")";
}

std::vector<int64_t> TrainingRun::next_batch() const {
  if (rest_of_epoch_.empty()) return sampler_.batch(epoch_, batch_);
  const auto begin = rest_of_epoch_.begin() + batch_ * plan_.global_batch_size;
  return {begin, begin + std::min<int64_t>(plan_.global_batch_size, rest_of_epoch_.end() - begin)};
}

void TrainingRun::advance() {
  ++batch_;
  const bool epoch_ends = rest_of_epoch_.empty()
                              ? batch_ == sampler_.batches(epoch_)
                              : batch_ * plan_.global_batch_size >= std::ssize(rest_of_epoch_);
  if (!epoch_ends) return;
  ++epoch_;
  batch_ = epoch_samples_ = 0;
  rest_of_epoch_.clear();
}

// From where the run stands: the batches left of its epoch, cut as they are, and those of the epochs to come.
int64_t TrainingRun::count_total_steps() const {
  if (training_.max_steps) return *training_.max_steps;
  int64_t steps = steps_done();
  for (int64_t epoch = epoch_; epoch < training_.epochs; ++epoch) {
    const bool cut_anew = epoch == epoch_ && !rest_of_epoch_.empty();
    steps += cut_anew ? (std::ssize(rest_of_epoch_) + plan_.global_batch_size - 1) / plan_.global_batch_size
                      : sampler_.batches(epoch);
  }
  return steps - batch_;
}

double TrainingRun::epochs_done() const {
  return static_cast<double>(epoch_) +
         static_cast<double>(epoch_samples_) / static_cast<double>(dataset_.size());
}

StepReport TrainingRun::step(const Requests& asked) {
  const auto start = std::chrono::steady_clock::now();
  const double communicated = group_.seconds_inside();
  StepReport report;
  report.epoch = epoch_;
  const auto batch = next_batch();
  LoggedValues logged;
  const Loss mine = accumulate(batch, logged);
  // What else all ranks must decide alike on goes with the reduction that is needed anyway.
  std::array<double, 6> totals = {mine.sum.item<double>(), mine.count,          asked.save ? 1.0 : 0,
                                  asked.stop ? 1.0 : 0,    asked.end ? 1.0 : 0, logged.empty() ? 0.0 : 1};
  {
    RECORD_USER_SCOPE(phase::wait);
    engine_.finish(totals);
  }
  const auto [loss_sum, count, save_requests, stop_requests, end_requests, logging_ranks] = totals;
  if (count <= 0) {
    throw DataError("step {}: the global batch has no label to learn from", steps_done() + 1);
  }
  const double norm = engine_.gradient_norm();
  const bool finite = std::isfinite(loss_sum) && std::isfinite(norm);
  const double factor = optim::schedule_factor(schedule_, steps_done()) * guard_.lr_scale();
  switch (guard_.judge(loss_sum / count, norm / count, steps_done() + 1, finite ? "" : find_culprit(mine))) {
    case StepGuard::Verdict::take: {
      RECORD_USER_SCOPE(phase::optimizer);
      optimizer_->step(factor, clip_scale(count, norm), engine_.touched_rows());
      engine_.gradients_were_taken();
      logged_.add(logged);
      logged_somewhere_ |= logging_ranks > 0;
      break;
    }
    case StepGuard::Verdict::skip:
      engine_.zero_gradients();
      optimizer_->skip_step();
      report.taken = false;
      break;
    case StepGuard::Verdict::rollback:
      engine_.zero_gradients();
      report.rollback = guard_.reason();
      return report;
  }
  arena_.verify();
  epoch_samples_ += std::ssize(batch);
  advance();
  report.epoch_ends = batch_ == 0;
  report.requests = {save_requests > 0, stop_requests > 0, end_requests > 0};
  report.step = steps_done();
  report.epochs = epochs_done();
  report.loss = loss_sum / count;
  report.grad_norm = norm / count;
  report.lr = optimizer_->base_lr() * factor;
  report.samples = std::ssize(batch);
  for (const int64_t sample : batch) report.tokens += dataset_.lengths()[static_cast<size_t>(sample)];
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.communication = group_.seconds_inside() - communicated;
  return report;
}

void TrainingRun::collect_logged() {
  if (logged_somewhere_) logged_.collect(group_);
  logged_somewhere_ = false;
}

Metrics TrainingRun::take_logged() {
  collect_logged();
  return logged_.take();
}

void TrainingRun::compare_replicas() {
  catch_up();
  engine_.compare_replicas();
}

NamedTensors TrainingRun::weights() {
  catch_up();
  NamedTensors weights;
  for (const auto& parameter : arena_.parameters())
    weights[parameter.info.name] = arena_.master_view(parameter);
  for (const auto& [name, tensor] : tensors_.constant) weights[name] = tensor.detach();
  return weights;
}

State TrainingRun::state() {
  collect_logged();
  catch_up();
  State state;
  const auto slot_names = optimizer_->slot_names();
  for (const auto& parameter : arena_.parameters()) {
    const std::vector<int64_t> shape = parameter.info.tensor.sizes().vec();
    const auto part = [&](const Tensor& buffer) { return buffer.slice(0, parameter.begin, parameter.end); };
    state.tensors.push_back(
        whole_entry("model." + parameter.info.name, shape, part(arena_.buffers().master)));
    for (size_t slot = 0; slot < slot_names.size(); ++slot) {
      state.tensors.push_back(
          whole_entry(fmt::format("optimizer.{}.{}", slot_names[slot], parameter.info.name), shape,
                      part(optimizer_->slots()[slot])));
    }
  }
  for (const auto& [name, tensor] : tensors_.constant) {
    state.tensors.push_back(whole_entry("model." + name, tensor.sizes().vec(), tensor.detach()));
  }
  guard_.add_state(state);
  state.scalars["logged"] = logged_.to_json();
  state.scalars["optimizer"] = {{"type", optimizer_->name()}, {"steps", steps_done()}};
  state.scalars["data"] = {{"samples", dataset_.size()},
                           {"lengths_hash", hash64({reinterpret_cast<const char*>(dataset_.lengths().data()),
                                                    dataset_.lengths().size_bytes()})}};
  state.scalars["place"] = {
      {"epoch", epoch_},
      {"batch", batch_},
      {"samples", epoch_samples_},
      {"order",
       rest_of_epoch_.empty() ? order_of(sampler_options(training_, plan_, dataset_)) : rest_order_}};
  return state;
}

void TrainingRun::resume(const State& state) {
  const auto here = this->state().scalars;
  if (state.scalars.at("data") != here.at("data")) {
    throw ConfigError(
        "data.train holds {} samples here and {} in the run to resume, or samples of other lengths: a run can only be resumed on the same data",
        dataset_.size(), state.scalars.at("data").at("samples").dump());
  }
  rest_of_epoch_.clear();
  arena_.refresh_compute();
  guard_.resume(state);
  logged_.from_json(group_.rank() == 0 ? state.scalars.at("logged") : nlohmann::json::object());
  logged_somewhere_ = false;
  optimizer_->resume(state.scalars.at("optimizer").at("steps"));
  const nlohmann::json& place = state.scalars.at("place");
  place.at("epoch").get_to(epoch_);
  place.at("samples").get_to(epoch_samples_);
  if (order_in(place) == here.at("place").at("order") && sampled_before(place) == epoch_samples_) {
    place.at("batch").get_to(batch_);
  } else {
    resume_inside_epoch(place);
  }
  schedule_.total_steps = count_total_steps();
}

// Samples that batches 0 to `batch` of this run's own order hold, of an epoch that was cut into them from its start.
int64_t TrainingRun::sampled_before(const nlohmann::json& place) const {
  if (plan_.global_batch_size == 0) return epoch_samples_;
  return std::min(dataset_.size(), place.at("batch").get<int64_t>() * plan_.global_batch_size);
}

// The epoch goes on with the samples that the other batches would have taken next.
void TrainingRun::resume_inside_epoch(const nlohmann::json& place) {
  rest_order_ = order_in(place);
  if (plan_.global_batch_size == 0 || rest_order_.at("max_tokens") != 0) {
    throw ConfigError(
        "a run under training.max_tokens can be resumed only with the same budget over all ranks, and with batches that are made up alike: it had {} tokens a step",
        rest_order_.at("max_tokens").dump());
  }
  if (epoch_samples_ > 0) rest_of_epoch_ = samples_left(rest_order_);
  batch_ = 0;
}

// Of the epoch under way, in the order of batches of another size.
std::vector<int64_t> TrainingRun::samples_left(const nlohmann::json& order) const {
  data::SamplerOptions options = sampler_options(training_, plan_, dataset_);
  const int64_t global_batch_size = options.global_batch_size = order.at("global_batch_size");
  options.group_by_length = order.at("group_by_length");
  const data::Sampler before(dataset_.lengths(), options);
  std::vector<int64_t> left;
  for (int64_t batch = epoch_samples_ / global_batch_size; batch < before.batches(epoch_); ++batch) {
    const auto samples = before.batch(epoch_, batch);
    left.insert(left.end(), samples.begin(), samples.end());
  }
  left.erase(left.begin(), left.begin() + epoch_samples_ % global_batch_size);
  return left;
}

std::string TrainingRun::describe() const {
  const Precision precision = parse_precision(training_.precision);
  const std::string master = precision == Precision::fp64 ? "fp64" : "fp32";
  const bool widened = precision == Precision::bf16 && device_.is_cpu() && !nn::cpu_has_bf16();
  const auto buffer_bytes = static_cast<double>(arena_.buffers().master.nbytes());
  const double compute_bytes = arena_.buffers().compute.defined() ? arena_.buffers().compute.nbytes() : 0;
  const double slots = static_cast<double>(optimizer_->slot_names().size());
  const double total = buffer_bytes * (2 + slots) + compute_bytes;
  return fmt::format(
      "model      {} trained parameters in {} units, {} gradient buckets\n"
      "types      compute {}{} | master {} | gradient {} | reduce {}\n"
      "comm       {}\n"
      "memory     {} a rank: master {}, gradient {}, compute copy {}, {} {}; activations come on top\n"
      "batch      {} samples a step = {} a rank x {} ranks x {} accumulation steps\n"
      "run        {} steps, {} an epoch; {} samples, {} tokens",
      arena_.trained_elements(), arena_.units().size(), engine_.buckets(), training_.precision,
      widened ? " (this CPU has no bf16 instructions: products are computed in fp32 and rounded)" : "",
      master, master, master, group_.transport(), human_bytes(total), human_bytes(buffer_bytes),
      human_bytes(buffer_bytes), human_bytes(compute_bytes), optimizer_->name(),
      human_bytes(buffer_bytes * slots),
      plan_.global_batch_size > 0
          ? std::to_string(plan_.global_batch_size)
          : fmt::format("as many as fit {} tokens a rank", training_.max_tokens.value_or(0)),
      plan_.batch_size > 0 ? std::to_string(plan_.batch_size) : "a share", plan_.ranks,
      plan_.grad_accumulation_steps, total_steps(), steps_an_epoch(), dataset_.size(),
      std::accumulate(dataset_.lengths().begin(), dataset_.lengths().end(), int64_t{0}));
}

}  // namespace stretto
