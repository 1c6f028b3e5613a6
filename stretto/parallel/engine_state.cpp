#include "stretto/parallel/engine.h"
#include "stretto/parallel/engine_parts.h"
#include "stretto/parallel/replicas.h"

// The engine's entries in the state table.
namespace stretto {
namespace {

// A shard that several ranks hold is saved by the first of them.
void mark_copies(const EngineParts& engine, State& state) {
  const Group* replicas = engine.ranks.replicas;
  if (replicas == nullptr || replicas->rank() == 0) return;
  for (Entry& entry : state.tensors) entry.is_copy = !entry.replicated;
}

}  // namespace

void Engine::add_state(State& state, const StateNames& names) {
  EngineParts& engine = *parts_;
  engine.catch_up();
  engine.synchronise_buffers();
  for (const auto& parameter : engine.arena.parameters())
    state.tensors.push_back(engine.arena.master_entry(parameter, names.model + "." + parameter.info.name));
  if (engine.average) engine.average->add_state(state, "average");
  for (const NamedTensorList* tensors : {&engine.tensors().frozen, &engine.tensors().buffers}) {
    for (const auto& [name, tensor] : *tensors)
      state.tensors.push_back(whole_entry(names.model + "." + name, tensor.sizes().vec(), tensor.detach()));
  }
  if (engine.optimizer != nullptr) engine.optimizer->add_state(state, names.optimizer);
  mark_copies(engine, state);
  if (engine.arena.shards().size() > 1) add_entries_of_others(engine.ranks.all, state);
}

void Engine::resume(const State& state, const StateNames& names) {
  EngineParts& engine = *parts_;
  engine.arena.refresh_compute();
  engine.offload_state();
  if (engine.arena.master_is_sharded() || engine.arena.parameters_are_shared()) engine.share_parameters();
  compare_replicas();
  if (engine.optimizer != nullptr) engine.optimizer->resume(state, names.optimizer);
}

}  // namespace stretto
