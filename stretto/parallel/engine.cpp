#include "stretto/parallel/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"
#include "stretto/kernels/sum_of_squares.h"
#include "stretto/parallel/replicas.h"
#include "stretto/tensor/file_memory.h"

namespace stretto {
namespace {

// Loads parameters, and broadcasts rank 0's if they differ.
void load_equal(Group& group, const EngineOptions& options, const NamedTensorList& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters) names.push_back(name);
  if (options.load_parameters) options.load_parameters(names);
  if (group.size() == 1) return;
  // Ranks that used the same seed or file agree already: comparing hashes is faster than broadcasting.
  std::vector<uint64_t> checksums;
  for (const auto& [name, tensor] : parameters) checksums.push_back(checksum(tensor));
  if (first_divergent_rank(group, hash64(checksums))) broadcast_tensors(group, parameters);
}

PrepareParameters load_some(Group& group, const EngineOptions& options) {
  return [&](std::span<const NamedParameter> some) {
    NamedTensorList parameters;
    for (const NamedParameter& parameter : some) parameters.emplace_back(parameter.name, parameter.tensor);
    load_equal(group, options, parameters);
  };
}

bool steps_shards(const DataParallel& ranks, const Sharding& sharding) {
  return sharding.optimizer == Held::sharded && ranks.shard.size() > 1;
}

// Whether sparse tables are reduced by rows. Sums over copies are of whole shards.
bool use_rows(const DataParallel& ranks, const EngineOptions& options, const Sharding& sharding,
              const optim::Optimizer* optimizer) {
  if (!options.lazy_rows || options.fixed_order > 0 || optimizer == nullptr || ranks.replicas != nullptr)
    return false;
  return steps_shards(ranks, sharding) || optimizer->steps_rows();
}

ModuleTensors collect(torch::nn::Module& module, const DataParallel& ranks, const EngineOptions& options,
                      const Sharding& sharding, const optim::Optimizer* optimizer) {
  ModuleTensors tensors = collect_tensors(module, options.groups, options.min_unit_elements);
  const bool rows = use_rows(ranks, options, sharding, optimizer);
  for (NamedParameter& parameter : tensors.trainable) {
    if (!parameter.sparse) continue;
    const bool on_cpu = parameter.tensor.device().is_cpu();
    const bool keeps_idle = optimizer != nullptr && optimizer->keeps_idle_rows();
    if (keeps_idle && !on_cpu) {
      throw ConfigError(
          "{} steps the rows of sparse tables on the CPU only, and {} is on {}; choose Adam, or the CPU as the device",
          optimizer->name(), parameter.name, parameter.tensor.device().str());
    }
    parameter.sparse = rows && on_cpu;
    parameter.steps_rows = keeps_idle || (parameter.sparse && !steps_shards(ranks, sharding));
  }
  load_equal(ranks.all, options, tensors.frozen);
  broadcast_tensors(ranks.all, tensors.buffers);
  return tensors;
}

Sharding row_of(const EngineOptions& options) {
  Sharding row = find_sharding(options.strategy);
  row.reshard_after_forward = options.reshard_after_forward;
  return row;
}

bool use_shared_parameters(const EngineOptions& options, const Sharding& sharding, const Group& group) {
  return group.size() > 1 && sharding.optimizer == Held::sharded && options.shared_parameters &&
         group.shares_memory();
}

ArenaOptions arena_options(const EngineOptions& options, const Sharding& sharding, const Group& group,
                           const optim::Optimizer* optimizer) {
  if (sharding.optimizer == Held::sharded && optimizer == nullptr) {
    throw ConfigError(
        "strategy {} shards optimizer state, which requires one of stretto's optimizers; found none",
        sharding.name);
  }
  if (sharding.optimizer == Held::sharded && group.size() > 1 &&
      optimizer->placement() == optim::Placement::whole_model) {
    throw ConfigError(
        "strategy {} divides the parameters among the ranks, but {} needs all of them on each; choose strategy ddp, or another optimizer",
        sharding.name, optimizer->name());
  }
  const auto of_group = [&](Held held) { return group.size() > 1 ? held : Held::replicated; };
  const bool shared = use_shared_parameters(options, sharding, group);
  return {.precision = options.precision,
          .optimizer = of_group(sharding.optimizer),
          .gradients = of_group(sharding.gradients),
          .parameters = shared ? Held::replicated : of_group(sharding.parameters),
          .shards = group.size(),
          .shard = group.rank(),
          .placement = optimizer != nullptr ? optimizer->placement() : optim::Placement::flat,
          .shared_parameters = shared};
}

// Parameters lie in the common memory of the group's ranks if `options` shares them.
ArenaMemory arena_memory(const ArenaOptions& options, Group& group) {
  ArenaMemory memory = {.gradients = group.allocator()};
  if (options.parameters == Held::sharded) memory.parameters = group.allocator();
  if (options.shared_parameters) {
    memory.parameters = [&group](int64_t elements, at::ScalarType dtype, at::Device) {
      return group.common_memory(elements, dtype);
    };
  }
  return memory;
}

ReducerOptions reducer_options(const EngineOptions& options, const Arena& arena, const Group& group) {
  const bool shards = arena.shards().size() > 1;
  // Between hosts an all-reduce is faster: it uses the shared memory of each host, which a reduce does not.
  const bool cheap = group.shares_memory() || group.backend() == "nccl";
  const bool to_owners = shards && cheap && options.gradients_to_owners && options.fixed_order == 0;
  return {.bucket_bytes = options.bucket_bytes,
          .to_owners = arena.gradients_are_sharded() || to_owners,
          .fixed_order = options.fixed_order};
}

// Casts frozen parameters and buffers to the dtype of the compute copy.
void cast_to_compute(const NamedTensorList& tensors, at::ScalarType dtype) {
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.is_floating_point() && dtype != at::kFloat) tensor.set_data(tensor.to(dtype));
  }
}

}  // namespace

Engine::Engine(torch::nn::Module& module, const DataParallel& ranks, const EngineOptions& options,
               std::unique_ptr<optim::Optimizer> optimizer)
    : options_(options),
      sharding_(row_of(options)),
      ranks_(ranks),
      tensors_(collect(module, ranks, options, sharding_, optimizer.get())),
      optimizer_(std::move(optimizer)),
      arena_options_(arena_options(options, sharding_, ranks.shard, optimizer_.get())),
      arena_(tensors_.trainable, arena_options_, arena_memory(arena_options_, ranks.shard),
             load_some(ranks.all, options)),
      reducer_(arena_, ranks.shard, reducer_options(options, arena_, ranks.shard)) {
  if (arena_.parameters_are_shared()) ranks.shard.barrier();  // each rank has written its shard
  if (arena_.parameters_are_sharded())
    units_.emplace(module, arena_, ranks.shard, sharding_.reshard_after_forward).refresh();
  cast_to_compute(tensors_.frozen, compute_dtype(options.precision));
  cast_to_compute(tensors_.buffers, compute_dtype(options.precision));
  synchronised_versions_ = buffer_versions();
  if (optimizer_ == nullptr) return;
  optimizer_->bind(arena_.owned_buffers(), arena_.owned_pieces(), optimizer_memory());
  offload_state();
  if (options_.average)
    average_.emplace(*options_.average, arena_.owned_buffers().master, arena_.owned_pieces());
  if (arena_.shards().size() > 1) return;
  for (size_t table = 0; table < reducer_.tables().size(); ++table) {
    reducer_.tables()[table]->on_read(
        [this, table](std::span<const int64_t> rows) { optimizer_->catch_up(table, rows); });
  }
}

Engine::~Engine() { catch_up(); }

Allocator Engine::optimizer_memory() {
  const std::filesystem::path& folder = options_.offload_optimizer;
  if (folder.empty()) return plain_memory();
  if (!arena_.parameter_values().device().is_cpu()) {
    throw ConfigError("{}: parameters are on {}; only the CPU steps state in files",
                      options_.names("offload_optimizer"), arena_.parameter_values().device().str());
  }
  return [this, files = file_allocator(folder)](int64_t elements, at::ScalarType dtype, at::Device device) {
    try {
      return offloaded_.emplace_back(files(elements, dtype, device));
    } catch (const IoError& error) {
      throw ConfigError("{}: {}; the folder must exist on each host, with room for the state of its ranks",
                        options_.names("offload_optimizer"), error.what());
    }
  };
}

void Engine::offload_state() const {
  for (const Tensor& state : offloaded_) leave_to_file(state);
}

double clip_scale(double norm, double max_norm) {
  return max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6) : 1;
}

void Engine::backward(const Tensor& loss_sum, bool last_micro_batch) {
  const bool reduces = last_micro_batch || arena_.gradients_are_sharded();
  reducer_.backward(loss_sum, reduces);
  if (!last_micro_batch) reducer_.set_gradients_aside();
  if (!last_micro_batch && reduces) reducer_.finish();
}

void Engine::finish_reduction(std::span<double> totals) {
  reducer_.finish(totals);
  if (ranks_.replicas == nullptr) return;
  sum_over_replicas(gradients());
  if (totals.empty()) return;
  const Tensor sums =
      at::tensor(at::ArrayRef<double>(totals.data(), totals.size()), at::kDouble).to(ranks_.all.device());
  ranks_.replicas->all_reduce(sums).wait();
  std::copy_n(sums.cpu().const_data_ptr<double>(), totals.size(), totals.begin());
}

void Engine::sum_over_replicas(const Tensor& values) const {
  const auto most = std::max<int64_t>(
      1, static_cast<int64_t>(options_.bucket_bytes / static_cast<double>(values.element_size())));
  std::vector<Work> works;
  for (const Tensor& part : values.split(most)) works.push_back(ranks_.replicas->all_reduce(part));
  for (Work& work : works) work.wait();
}

double Engine::gradient_norm() const {
  double squares = reducer_.sum_of_squares();
  if (reducer_.sums_to_owners()) {
    const Tensor sum = at::scalar_tensor(squares, at::kDouble).to(ranks_.shard.device());
    ranks_.shard.all_reduce(sum).wait();
    squares = sum.item<double>();
  }
  return std::sqrt(squares);
}

std::string Engine::first_nonfinite() const {
  int64_t first = reducer_.first_nonfinite();
  if (reducer_.sums_to_owners()) first = least_of_shards(first);
  return parameter_name(first);
}

// Of the ranks' parameters the first; -1: none.
int64_t Engine::least_of_shards(int64_t parameter) const {
  constexpr int64_t none = std::numeric_limits<int64_t>::max();
  const Tensor least =
      at::scalar_tensor(parameter < 0 ? none : parameter, at::kLong).to(ranks_.shard.device());
  ranks_.shard.all_reduce(least, ReduceOp::min).wait();
  return least.item<int64_t>() == none ? -1 : least.item<int64_t>();
}

std::string Engine::parameter_name(int64_t parameter) const {
  return parameter < 0 ? "" : arena_.parameters()[static_cast<size_t>(parameter)].info.name;
}

bool Engine::own_gradients_are_finite() const { return reducer_.all_finite(); }

Tensor Engine::gradients() const { return arena_.gradients(reducer_.held()); }

void Engine::scale_gradients(double factor) { gradients().mul_(factor); }

void Engine::keep_gradients(const std::function<bool(const std::string&)>& keeps) {
  for (size_t i = 0; i < arena_.parameters().size(); ++i) {
    if (!keeps(arena_.parameters()[i].info.name)) reducer_.zero_gradient(i);
  }
}

void Engine::clamp_gradients(double limit) { gradients().clamp_(-limit, limit); }

void Engine::step(const optim::StepRates& rates, double grad_scale) {
  if (optimizer_ == nullptr) throw Error("step: this engine has no optimizer");
  if (arena_.parameters_are_shared()) ranks_.shard.barrier();  // others may still compute with them
  optimizer_->step(rates, grad_scale, reducer_.touched_rows());
  follow_step();
}

// Its parameters are whole on every rank.
void Engine::step(const optim::StepRates& rates, const optim::Evaluation& first,
                  const optim::Reevaluate& again) {
  if (optimizer_ == nullptr) throw Error("step: this engine has no optimizer");
  optimizer_->step(rates, first, [&] {
    reducer_.gradients_were_zeroed();
    return again();
  });
  follow_step();
}

void Engine::follow_step() {
  reducer_.gradients_were_zeroed();
  if (average_) {
    catch_up();
    average_->update(steps_done());
  }
  offload_state();
  if (arena_.shards().size() == 1) return;
  if (!reducer_.sums_to_owners()) {  // the optimizer has zeroed its shard
    arena_.gradients({0, arena_.owned().begin}).zero_();
    arena_.gradients({arena_.owned().end, arena_.elements()}).zero_();
  }
  share_parameters();
}

// After each rank has written its shard of the parameters: makes all of them available to the others.
void Engine::share_parameters() {
  if (arena_.parameters_are_shared()) return ranks_.shard.barrier();
  if (units_) return units_->refresh();
  if (arena_.shards().size() > 1) gather_shards(arena_.parameter_values());
}

void Engine::swap_average() {
  catch_up();
  if (arena_.parameters_are_shared()) ranks_.shard.barrier();  // others may still compute with them
  average_->swap();
  arena_.refresh_compute();
  share_parameters();
}

void Engine::skip_step() {
  zero_gradients();
  optimizer_->skip_step();
}

void Engine::catch_up() {
  if (optimizer_ != nullptr) optimizer_->catch_up();
}

// Gathers every rank's shard of `whole` on all ranks.
void Engine::gather_shards(const Tensor& whole) const {
  const auto& shards = arena_.shards();
  const auto part = [&](const Range& range) { return whole.slice(0, range.begin, range.end); };
  const bool even = std::ranges::all_of(shards, [&](const Range& r) { return r.size() == shards[0].size(); });
  if (even) return ranks_.shard.all_gather(whole, part(arena_.owned())).wait();
  std::vector<Work> works;
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    if (shards[rank].size() > 0)
      works.push_back(ranks_.shard.broadcast(part(shards[rank]), static_cast<int>(rank)));
  }
  for (Work& work : works) work.wait();
}

// A rank that answers for its shard only is compared with those that hold the shard in other copies.
void Engine::compare_replicas() {
  catch_up();
  const bool common = arena_.parameters_are_shared() || arena_.parameters_are_sharded();
  if (ranks_.all.size() == 1 || (common && ranks_.replicas == nullptr)) return;
  const Tensor values = common                       ? arena_.owned_buffers().master
                        : arena_.master_is_sharded() ? arena_.buffers().compute
                                                     : arena_.buffers().master;
  const size_t apart = common ? static_cast<size_t>(ranks_.shard.size()) : 1;
  if (const auto rank = first_divergent_rank(ranks_.all, checksum(values), apart)) {
    throw DistributedError(
        "the parameters of rank {} differ from rank {}'s although both applied the same gradients; check the network and the memory of its host",
        *rank, *rank % apart);
  }
}

std::vector<int64_t> Engine::buffer_versions() const {
  std::vector<int64_t> versions;
  for (const auto& [name, tensor] : tensors_.buffers)
    versions.push_back(static_cast<int64_t>(tensor._version()));
  return versions;
}

bool Engine::buffers_changed() const { return buffer_versions() != synchronised_versions_; }

void Engine::synchronise_buffers() {
  broadcast_tensors(ranks_.all, tensors_.buffers);
  synchronised_versions_ = buffer_versions();
}

EngineMemory Engine::memory() const {
  const optim::Buffers& buffers = arena_.buffers();
  const auto bytes = [](const Tensor& buffer) {
    return buffer.defined() ? static_cast<int64_t>(buffer.nbytes()) : 0;
  };
  const bool common = arena_.parameters_are_shared();
  const auto of_parameters = [&](const Tensor& buffer) {
    return common ? bytes(buffer) / ranks_.shard.size() : bytes(buffer);
  };
  return {.master = buffers.compute.defined() ? bytes(buffers.master) : of_parameters(buffers.master),
          .gradients = bytes(buffers.grad),
          .compute = of_parameters(buffers.compute),
          .optimizer = optimizer_ != nullptr && offloaded_.empty() ? optimizer_->state_bytes() : 0,
          .optimizer_in_files = offloaded_.empty() ? 0 : optimizer_->state_bytes(),
          .average = average_ ? average_->bytes() : 0,
          .parameters_are_shared = common};
}

std::string Engine::describe(const std::string& title, const std::string& compute) const {
  const char* master = master_dtype(options_.precision) == at::kDouble ? "fp64" : "fp32";
  const EngineMemory bytes = memory();
  const auto human = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  return fmt::format(
      "{:<11}{} trainable parameters in {} units, {} gradient bucket{}; {} frozen tensors, {} buffers\n"
      "types      compute {} | master {} | gradient {} | reduce {}\n"
      "memory     {} per rank: master {}, gradients {}{}{}{}; plus activations{}",
      title, arena_.trainable_elements(), arena_.units().size(), reducer_.buckets(),
      reducer_.buckets() == 1 ? "" : "s", tensors_.frozen.size(), tensors_.buffers.size(), compute, master,
      master, master, human(bytes.total()), human(bytes.master), human(bytes.gradients),
      bytes.compute > 0 ? ", compute copy " + human(bytes.compute) : "",
      optimizer_ == nullptr ? "; the optimizer's state"
      : offloaded_.empty()
          ? fmt::format(", {} {}", optimizer_->name(), human(bytes.optimizer))
          : fmt::format("; {} {} in files of {}", optimizer_->name(), human(bytes.optimizer_in_files),
                        options_.offload_optimizer.string()),
      bytes.average > 0 ? ", average " + human(bytes.average) : "",
      bytes.parameters_are_shared
          ? fmt::format("\nsharing    {} ranks of this host hold one copy of the parameters{}",
                        ranks_.shard.size(),
                        ranks_.replicas != nullptr ? fmt::format("; {} copies", ranks_.replicas->size()) : "")
          : "");
}

}  // namespace stretto
