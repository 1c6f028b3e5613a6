#include "stretto/parallel/engine.h"
#include "stretto/parallel/engine_parts.h"

// Implements the engine's entries in the state table.
namespace stretto::parallel {

void Engine::add_state(State& state, const StateNames& names) {
  EngineParts& engine = *parts_;
  engine.catch_up();
  engine.synchronise_buffers();
  for (const auto& parameter : engine.arena.parameters())
    state.tensors.push_back(engine.arena.master_entry(parameter, names.model + "." + parameter.info.name));
  if (engine.average) engine.average->add_state(state, "average");
  for (const NamedTensorList* tensors : {&engine.tensors().frozen, &engine.tensors().buffers}) {
    for (const auto& [name, tensor] : *tensors)
      state.tensors.push_back(whole_entry(names.model + "." + name, tensor.sizes().vec(), tensor.detach(),
                                          engine.arena_options.copies_of_whole.holders));
  }
  if (engine.optimizer != nullptr) engine.optimizer->add_state(state, names.optimizer);
}

void Engine::resume(const State& state, const StateNames& names) {
  EngineParts& engine = *parts_;
  engine.arena.refresh_compute();
  engine.offload_state();
  engine.offload_parameters();
  if (engine.arena.master_is_sharded() || engine.arena.parameters_are_shared()) engine.share_parameters();
  compare_replicas();
  if (engine.optimizer != nullptr) engine.optimizer->resume(state, names.optimizer);
}

}  // namespace stretto::parallel
