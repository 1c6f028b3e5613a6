#include "stretto/parallel/engine.h"

#include <algorithm>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/parallel/engine_parts.h"
#include "stretto/parallel/leaf_watch.h"
#include "stretto/parallel/replicas.h"

namespace stretto::parallel {
namespace {

// Throws unless all ranks with the same `part` of parameters that have so many copies, or are not divided
// (0), have equal ones. `what` names them in the message. Collective.
void compare_copies(const EngineParts& engine, int copies, int part, const char* what) {
  const Arena& arena = engine.arena;
  const int shard = arena.parameters_are_sharded() ? engine.ranks.shard.rank() : 0;
  std::vector<uint64_t> checksums;
  for (const Arena::Parameter& parameter : arena.parameters()) {
    const TensorLayout& layout = parameter.info.layout;
    if (layout.cuts.empty() ? copies != 0 : copies_of(layout) != copies) continue;
    if (!arena.parameters_are_sharded()) {
      checksums.push_back(checksum(parameter.info.tensor));
      continue;
    }
    const Range own = (arena.owned() & Range{parameter.begin, parameter.end}).shifted(-arena.owned().begin);
    checksums.push_back(checksum(arena.parameter_values().slice(0, own.begin, own.end)));
  }
  const int held = part * engine.ranks.shard.size() + shard;
  if (const auto found = first_divergent_rank(engine.ranks.stage, hash64(checksums), held)) {
    throw DistributedError(
        "{} differ between ranks {} and {}, although both applied the same gradients; check the memory of their host",
        what, found->rank, found->reference);
  }
}

// Throws unless what ranks among which layers are divided have in common is equal on them. Collective.
void compare_parts(const EngineParts& engine) {
  compare_copies(engine, 0, 0, "the parameters that are not divided");
  for (const auto& [copies, _] : engine.copied.groups())
    compare_copies(engine, copies, engine.ranks.parts.rank() / copies, "the copies of parts of parameters");
}

}  // namespace

Engine::Engine(torch::nn::Module& module, const Mesh& mesh, const EngineOptions& options,
               std::unique_ptr<optim::Optimizer> optimizer, const TensorSource* values)
    : parts_(std::make_unique<EngineParts>(module, mesh, options, std::move(optimizer), values)) {}

Engine::~Engine() { parts_->catch_up(); }

const EngineFacts& Engine::facts() const { return parts_->facts; }

GradientUses Engine::uses(const Tensor& loss, std::vector<Tensor>* others) const {
  if (!loss.defined()) return GradientUses(parts_->arena.parameters().size(), 0);
  return parts_->reducer.count_uses(loss, others);
}

Backward Engine::open(GradientUses uses, Reduce reduce) { return {*parts_, std::move(uses), reduce}; }

void Engine::backward(const Tensor& loss_sum, Reduce reduce) {
  std::vector<Tensor> others;
  GradientUses found = uses(loss_sum, &others);
  if (parts_->watch) parts_->watch->note(found, others);
  Backward pass = open(std::move(found), reduce);
  if (loss_sum.defined()) loss_sum.backward();
  pass.close();
}

void Engine::watch_leaves() { parts_->watch.emplace(facts().tensors.trainable.size()); }

WatchedLeaves Engine::take_leaves() {
  const std::optional<LeafWatch> watch = std::exchange(parts_->watch, std::nullopt);
  return watch ? watch->leaves() : WatchedLeaves();
}

void Engine::finish(std::span<double> totals) {
  EngineParts& engine = *parts_;
  engine.reducer.finish(totals);
  engine.copied.sum_gradients(engine.arena, engine.reducer.held());
  Group* replicas = engine.ranks.replicas;
  if (replicas == nullptr || engine.options.fixed_order > 0) return;  // the reducer has summed over all ranks
  const Tensor held = gradients().held();
  const auto most = std::max<int64_t>(
      1, static_cast<int64_t>(engine.options.bucket_bytes / static_cast<double>(held.element_size())));
  std::vector<Work> works;
  for (const Tensor& part : held.split(most)) works.push_back(replicas->all_reduce(part));
  for (Work& work : works) work.wait();
  if (totals.empty()) return;
  const Tensor sums = at::tensor(at::ArrayRef<double>(totals.data(), totals.size()), at::kDouble)
                          .to(engine.ranks.all.device());
  replicas->all_reduce(sums).wait();
  std::copy_n(sums.cpu().const_data_ptr<double>(), totals.size(), totals.begin());
}

void Engine::verify() const { parts_->arena.verify(); }

void Engine::step(const StepInput& input) {
  EngineParts& engine = *parts_;
  if (engine.optimizer == nullptr) throw Error("step: this engine has no optimizer");
  verify();
  if (input.again) {  // then the optimizer needs whole parameters, and every rank has them
    engine.optimizer->step(input.rates, {input.loss, input.grad_scale}, [&] {
      engine.reducer.gradients_were_zeroed();
      return input.again();
    });
  } else {
    if (engine.arena.parameters_are_shared())
      engine.ranks.shard.barrier();  // others may still compute with them
    engine.optimizer->step(input.rates, input.grad_scale, engine.reducer.touched_rows());
  }
  follow_step(input.averages);
}

void Engine::average_weights(int64_t step) {
  EngineParts& engine = *parts_;
  if (!engine.average) return;
  engine.catch_up();
  engine.average->update(step);
}

void Engine::follow_step(bool averages) {
  EngineParts& engine = *parts_;
  engine.reducer.gradients_were_zeroed();
  if (averages) average_weights(steps_done());
  engine.offload_state();
  engine.offload_parameters();
  Arena& arena = engine.arena;
  if (arena.shards().size() == 1) return;
  if (!engine.reducer.sums_to_owners()) {  // the optimizer has zeroed its shard
    arena.gradients({0, arena.owned().begin}).zero_();
    arena.gradients({arena.owned().end, arena.elements()}).zero_();
  }
  engine.share_parameters();
}

void Engine::skip_step() {
  verify();
  gradients().clear();
  parts_->optimizer->skip_step();
}

int64_t Engine::steps_done() const { return parts_->optimizer->steps_done(); }

// If parameters are sharded, a rank is compared with the ranks that hold the same shard in other copies.
void Engine::compare_replicas() {
  EngineParts& engine = *parts_;
  const Arena& arena = engine.arena;
  engine.catch_up();
  const bool common = arena.parameters_are_shared() || arena.parameters_are_sharded();
  if (engine.facts.is_divided) compare_parts(engine);
  if (engine.ranks.all.size() == 1 || (common && engine.ranks.replicas == nullptr)) return;
  const Tensor values = common                      ? arena.owned_buffers().master
                        : arena.master_is_sharded() ? arena.buffers().compute
                                                    : arena.buffers().master;
  const int part = common ? engine.ranks.shard.rank() : 0;
  if (const auto found = first_divergent_rank(engine.ranks.all, checksum(values), part)) {
    throw DistributedError(
        "the parameters of rank {} differ from rank {}'s although both applied the same gradients; look for code that writes parameters on some ranks, and check the network and the memory of its host",
        found->rank, found->reference);
  }
}

void Engine::synchronise_buffers() { parts_->synchronise_buffers(); }

bool Engine::buffers_changed() const { return parts_->buffer_versions() != parts_->synchronised_versions; }

}  // namespace stretto::parallel
