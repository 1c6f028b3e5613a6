#include "stretto/parallel/engine_parts.h"

#include <algorithm>
#include <array>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/comm/holders.h"
#include "stretto/parallel/divided_weights.h"
#include "stretto/parallel/first_values.h"
#include "stretto/parallel/replicas.h"
#include "stretto/tensor/file_memory.h"

namespace stretto::parallel {
namespace {

bool steps_shards(const DataParallel& ranks, const Sharding& sharding) {
  return sharding.optimizer == Held::sharded && ranks.shard.size() > 1;
}

bool is_cut(const NamedParameter& parameter) { return !parameter.layout.cuts.empty(); }

bool is_divided(const ModuleTensors& tensors) { return std::ranges::any_of(tensors.trainable, is_cut); }

// Throws ConfigError unless a parameter that is divided among ranks can be trained.
void check_cut(const NamedParameter& parameter, const DataParallel& ranks,
               const optim::Optimizer* optimizer) {
  for (const Cut& cut : parameter.layout.cuts) {
    if (cut.over != Axis::tp || ranks.parts.size() == 1 || ranks.parts.size() % cut.copies != 0) {
      throw ConfigError(
          "parameter {} is cut, but not into one part, or a copy of one, for each rank of the mesh's axis tp, which has {}",
          parameter.name, ranks.parts.size());
    }
  }
  if (optimizer != nullptr && !optim::steps_parts(*optimizer)) {
    throw ConfigError(
        "{} needs whole parameters, and {} is divided among ranks (tp); choose an optimizer whose rule is per element, such as AdamW",
        optimizer->name(), parameter.name);
  }
}

// Whether sparse tables are reduced by rows. With several copies of the model, whole shards are summed
// instead.
bool use_rows(const DataParallel& ranks, const EngineOptions& options, const Sharding& sharding,
              const optim::Optimizer* optimizer) {
  if (!options.lazy_rows || options.fixed_order > 0 || optimizer == nullptr || ranks.replicas != nullptr)
    return false;
  return steps_shards(ranks, sharding) || optimizer->steps_rows();
}

ModuleTensors collect(torch::nn::Module& module, const DataParallel& ranks, const EngineOptions& options,
                      const Sharding& sharding, const optim::Optimizer* optimizer,
                      const TensorSource* values) {
  ModuleTensors tensors = collect_tensors(module, options.groups, options.min_unit_elements);
  const bool divided = is_divided(tensors);
  const bool rows = !divided && use_rows(ranks, options, sharding, optimizer);
  for (NamedParameter& parameter : tensors.trainable) {
    if (is_cut(parameter)) check_cut(parameter, ranks, optimizer);
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
  Group& copies = divided ? ranks.stage : ranks.all;
  FirstValues(copies, values).fill(tensors.frozen);
  broadcast_tensors(copies, tensors.buffers);
  return tensors;
}

Sharding row_of(const EngineOptions& options) {
  Sharding row = find_sharding(options.strategy);
  row.reshard_after_forward = options.reshard_after_forward;
  return row;
}

bool use_shared_parameters(const EngineOptions& options, const Sharding& sharding, const Group& group) {
  return group.size() > 1 && sharding.optimizer == Held::sharded && options.shared_parameters &&
         options.offload_parameters.empty() && group.shares_memory();
}

// The ranks that hold the same parts of parameters as this one, by the number of copies of a part. All of
// Axes::sum have copies of a part; those of dp_replicate the same shard of it.
std::map<int, ArenaOptions::Copies> copies_of_copied(const DataParallel& ranks, const CopiedParts& copied) {
  std::map<int, ArenaOptions::Copies> all;
  for (const auto& [copies, group] : copied.groups()) {
    const auto number = static_cast<uint64_t>(copies),
               part = static_cast<uint64_t>(ranks.parts.rank()) / number;
    const Holders holders = {.set = hash64(std::array{ranks.stage.id(), number, part}),
                             .ranks = ranks.all.size() * copies,
                             .me = ranks.all.rank() * copies + group->rank()};
    const int replicas = ranks.replicas != nullptr ? ranks.replicas->size() : 1,
              replica = ranks.replicas != nullptr ? ranks.replicas->rank() : 0;
    const auto shard = static_cast<uint64_t>(ranks.shard.rank());
    all[copies] = {.holders = holders,
                   .shard_holders = {.set = hash64(std::array{ranks.stage.id(), number, part, shard}),
                                     .ranks = replicas * copies,
                                     .me = replica * copies + group->rank()}};
  }
  return all;
}

ArenaOptions make_arena_options(const EngineOptions& options, const Sharding& sharding,
                                const DataParallel& ranks, bool divided, const CopiedParts& copied,
                                const optim::Optimizer* optimizer) {
  const Group& group = ranks.shard;
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
  ArenaOptions::Copies copies = {.holders = comm::holders_of(ranks.all)}, of_whole = copies;
  if (ranks.replicas != nullptr) copies.shard_holders = comm::holders_of(*ranks.replicas);
  of_whole.shard_holders = copies.shard_holders;
  if (divided) of_whole = {comm::holders_of(ranks.stage), comm::holders_of(ranks.copies)};
  return {.precision = options.precision,
          .optimizer = of_group(sharding.optimizer),
          .gradients = of_group(options.fixed_order > 0 ? Held::replicated : sharding.gradients),
          .parameters = shared ? Held::replicated : of_group(sharding.parameters),
          .shards = group.size(),
          .shard = group.rank(),
          .placement = optimizer != nullptr ? optimizer->placement() : optim::Placement::flat,
          .shared_parameters = shared,
          .copies = copies,
          .copies_of_whole = of_whole,
          .copies_of_copied = copies_of_copied(ranks, copied)};
}

// Allocates the parameters in files.
Allocator parameter_files(const EngineOptions& options) {
  return [&options](int64_t elements, at::ScalarType dtype, at::Device device) {
    if (!device.is_cpu()) {
      throw ConfigError("{}: parameters are on {}; only the CPU computes with parameters in files",
                        options.names("offload_parameters"), device.str());
    }
    try {
      return file_memory(options.offload_parameters, elements, dtype);
    } catch (const IoError& error) {
      throw ConfigError(
          "{}: {}; the folder must exist on each host, with room for the parameters of its ranks",
          options.names("offload_parameters"), error.what());
    }
  };
}

// The parameters are in the common memory of the group's ranks if `options` shares them.
ArenaMemory arena_memory(const EngineOptions& engine, const ArenaOptions& options, Group& group) {
  ArenaMemory memory = {.gradients = group.allocator()};
  if (!engine.offload_parameters.empty()) {
    memory.own = memory.parameters = parameter_files(engine);
    return memory;
  }
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

// Sets the facts that are known before the other parts are constructed.
EngineFacts first_facts(torch::nn::Module& module, const DataParallel& ranks, const EngineOptions& options,
                        const optim::Optimizer* optimizer, const TensorSource* values) {
  EngineFacts facts;
  facts.sharding = row_of(options);
  facts.precision = options.precision;
  facts.tensors = collect(module, ranks, options, facts.sharding, optimizer, values);
  facts.is_divided = is_divided(facts.tensors);
  return facts;
}

// Reads what this rank holds of consecutive parameters. Copies of a parameter that is not divided are on more
// ranks.
ReadParameters reader_of(const DataParallel& ranks, bool divided, const TensorSource* values) {
  const FirstValues parts(ranks.all, values), whole(divided ? ranks.stage : ranks.all, values);
  return [parts, whole](std::span<const HeldValues> held) {
    const auto same = [&](const HeldValues& next) {
      return is_cut(next.parameter) == is_cut(held[0].parameter);
    };
    while (!held.empty()) {
      const auto end = std::ranges::find_if_not(held, same);
      const auto alike = held.first(static_cast<size_t>(end - held.begin()));
      (is_cut(held[0].parameter) ? parts : whole).read(alike);
      held = held.subspan(alike.size());
    }
  };
}

}  // namespace

EngineParts::EngineParts(torch::nn::Module& module, const Mesh& mesh, const EngineOptions& engine_options,
                         std::unique_ptr<optim::Optimizer> stepper, const TensorSource* values)
    : options(engine_options),
      ranks(mesh, find_sharding(options.strategy)),
      tensor_parts(ranks.parts),
      facts(first_facts(module, ranks, options, stepper.get(), values)),
      optimizer(std::move(stepper)),
      copied(ranks.parts, facts.tensors.trainable),
      arena_options(
          make_arena_options(options, facts.sharding, ranks, facts.is_divided, copied, optimizer.get())),
      arena(facts.tensors.trainable, arena_options, arena_memory(options, arena_options, ranks.shard),
            reader_of(ranks, facts.is_divided, values)),
      reducer(arena, options.fixed_order > 0 ? ranks.all : ranks.shard,
              reducer_options(options, arena, ranks.shard)) {
  if (arena.parameters_are_shared()) ranks.shard.barrier();  // each rank has written its shard
  if (arena.parameters_are_sharded())
    units.emplace(module, arena, ranks.shard, facts.sharding.reshard_after_forward, parameters_in_files())
        .refresh();
  else if (parameters_in_files())
    file_units.emplace(module, arena);
  offload_parameters();
  cast_to_compute(facts.tensors.frozen, compute_dtype(options.precision));
  cast_to_compute(facts.tensors.buffers, compute_dtype(options.precision));
  synchronised_versions = buffer_versions();
  if (optimizer != nullptr) bind_optimizer();
  complete_facts();
}

void EngineParts::bind_optimizer() {
  std::vector<optim::ParameterPiece> pieces = arena.owned_pieces();
  if (facts.is_divided) {
    for (optim::ParameterPiece& piece : pieces) piece.parts = &tensor_parts;
  }
  optimizer->bind(arena.owned_buffers(), std::move(pieces), optimizer_memory(),
                  {.state = !options.offload_optimizer.empty(),
                   .parameters = parameters_in_files(),
                   .at_once = options.offloaded_at_once});
  offload_state();
  if (options.average) average.emplace(*options.average, arena.owned_buffers().master, arena.owned_pieces());
  if (arena.shards().size() > 1) return;
  for (size_t table = 0; table < reducer.tables().size(); ++table) {
    reducer.tables()[table]->on_read(
        [this, table](std::span<const int64_t> rows) { optimizer->catch_up(table, rows); });
  }
}

void EngineParts::complete_facts() {
  facts.shards = static_cast<int>(arena.shards().size());
  facts.copies = ranks.replicas != nullptr ? ranks.replicas->size() : 1;
  facts.gradients_are_sharded = arena.gradients_are_sharded();
  facts.passes_are_collective = units.has_value();
  facts.keeps_average = average.has_value();
  facts.trainable_elements = arena.trainable_elements();
  facts.elements = arena.elements();
  for (const Arena::Unit& unit : arena.units()) facts.units.push_back(unit.name);
  facts.buckets = reducer.buckets();
  facts.sparse_tables = reducer.tables().size();
  facts.memory = measure_memory();
  if (optimizer == nullptr) return;
  facts.optimizer = optimizer->name();
  facts.base_rates = optimizer->base_rates();
  facts.reevaluates = optimizer->reevaluates();
  facts.optimizer_folder = options.offload_optimizer;
  facts.parameter_folder = options.offload_parameters;
}

Allocator EngineParts::optimizer_memory() {
  const std::filesystem::path& folder = options.offload_optimizer;
  if (folder.empty()) return plain_memory();
  if (!arena.parameter_values().device().is_cpu()) {
    throw ConfigError("{}: parameters are on {}; only the CPU steps state in files",
                      options.names("offload_optimizer"), arena.parameter_values().device().str());
  }
  return [this, files = file_allocator(folder)](int64_t elements, at::ScalarType dtype, at::Device device) {
    try {
      return offloaded.emplace_back(files(elements, dtype, device));
    } catch (const IoError& error) {
      throw ConfigError("{}: {}; the folder must exist on each host, with room for the state of its ranks",
                        options.names("offload_optimizer"), error.what());
    }
  };
}

void EngineParts::offload_state() const {
  for (const Tensor& state : offloaded) leave_to_file(state);
}

void EngineParts::offload_parameters() const {
  if (!parameters_in_files()) return;
  for (const Tensor& buffer : {arena.buffers().master, arena.buffers().compute})
    if (buffer.defined()) leave_to_file(buffer);
}

int64_t EngineParts::least_of_ranks(int64_t parameter, bool over_shards) const {
  constexpr int64_t none = std::numeric_limits<int64_t>::max();
  const Tensor least =
      at::scalar_tensor(parameter < 0 ? none : parameter, at::kLong).to(ranks.shard.device());
  if (over_shards) ranks.shard.all_reduce(least, ReduceOp::min).wait();
  if (facts.is_divided) ranks.parts.all_reduce(least, ReduceOp::min).wait();
  return least.item<int64_t>() == none ? -1 : least.item<int64_t>();
}

Tensor EngineParts::whole(const Arena::Parameter& parameter, const Tensor& local) const {
  return tensor_parts.whole(parameter.info.layout, local);
}

std::string EngineParts::parameter_name(int64_t parameter) const {
  return parameter < 0 ? "" : arena.parameters()[static_cast<size_t>(parameter)].info.name;
}

void EngineParts::share_parameters() {
  if (arena.parameters_are_shared()) return ranks.shard.barrier();
  if (units) return units->refresh();
  if (arena.shards().size() > 1) gather_shards(arena.parameter_values());
}

void EngineParts::swap_average() {
  catch_up();
  if (arena.parameters_are_shared()) ranks.shard.barrier();  // others may still compute with them
  average->swap();
  arena.refresh_compute();
  share_parameters();
}

void EngineParts::catch_up() {
  if (optimizer != nullptr) optimizer->catch_up();
}

void EngineParts::gather_shards(const Tensor& whole) const {
  const auto& shards = arena.shards();
  const auto part = [&](const Range& range) { return whole.slice(0, range.begin, range.end); };
  const bool even = std::ranges::all_of(shards, [&](const Range& r) { return r.size() == shards[0].size(); });
  if (even) return ranks.shard.all_gather(whole, part(arena.owned())).wait();
  std::vector<Work> works;
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    if (shards[rank].size() > 0)
      works.push_back(ranks.shard.broadcast(part(shards[rank]), static_cast<int>(rank)));
  }
  for (Work& work : works) work.wait();
}

std::vector<int64_t> EngineParts::buffer_versions() const {
  std::vector<int64_t> versions;
  for (const auto& [name, tensor] : facts.tensors.buffers)
    versions.push_back(static_cast<int64_t>(tensor._version()));
  return versions;
}

void EngineParts::synchronise_buffers() {
  broadcast_tensors(facts.is_divided ? ranks.stage : ranks.all, facts.tensors.buffers);
  synchronised_versions = buffer_versions();
}

EngineMemory EngineParts::measure_memory() const {
  const optim::Buffers& buffers = arena.buffers();
  const auto bytes = [](const Tensor& buffer) {
    return buffer.defined() ? static_cast<int64_t>(buffer.nbytes()) : 0;
  };
  const bool common = arena.parameters_are_shared();
  const auto of_parameters = [&](const Tensor& buffer) {
    return common ? bytes(buffer) / ranks.shard.size() : bytes(buffer);
  };
  const int64_t master = buffers.compute.defined() ? bytes(buffers.master) : of_parameters(buffers.master),
                compute = of_parameters(buffers.compute);
  return {.master = parameters_in_files() ? 0 : master,
          .gradients = bytes(buffers.grad),
          .compute = parameters_in_files() ? 0 : compute,
          .optimizer = optimizer != nullptr && offloaded.empty() ? optimizer->state_bytes() : 0,
          .optimizer_in_files = offloaded.empty() ? 0 : optimizer->state_bytes(),
          .parameters_in_files = parameters_in_files() ? master + compute : 0,
          .average = average ? average->bytes() : 0,
          .parameters_are_shared = common};
}

}  // namespace stretto::parallel
