#include "stretto/base/error.h"
#include "stretto/parallel/engine.h"

// The engine's entries in the state table and in model files.
namespace stretto {

void Engine::add_model_state(State& state, const std::string& prefix) {
  catch_up();
  synchronise_buffers();
  for (const auto& parameter : arena_.parameters())
    state.tensors.push_back(arena_.master_entry(parameter, prefix + "." + parameter.info.name));
  if (average_) average_->add_state(state, "average");
  for (const NamedTensorList* tensors : {&tensors_.frozen, &tensors_.buffers}) {
    for (const auto& [name, tensor] : *tensors)
      state.tensors.push_back(whole_entry(prefix + "." + name, tensor.sizes().vec(), tensor.detach()));
  }
}

void Engine::leave_copies_to_first(State& state) const {
  if (ranks_.replicas == nullptr || ranks_.replicas->rank() == 0) return;
  for (Entry& entry : state.tensors) entry.is_copy = !entry.replicated;
}

void Engine::resume_model() {
  arena_.refresh_compute();
  if (arena_.master_is_sharded() || arena_.parameters_are_shared()) share_parameters();
  compare_replicas();
}

NamedTensors Engine::weights() {
  catch_up();
  synchronise_buffers();
  Tensor master = arena_.buffers().master;
  if (arena_.master_is_sharded()) {
    master = at::empty({arena_.elements()}, master.options());
    master.slice(0, arena_.owned().begin, arena_.owned().end).copy_(arena_.buffers().master);
    gather_shards(master);
  }
  NamedTensors weights;
  for (const auto& parameter : arena_.parameters()) {
    weights[parameter.info.name] =
        master.slice(0, parameter.begin, parameter.end).view(parameter.info.tensor.sizes());
  }
  for (const NamedTensorList* tensors : {&tensors_.frozen, &tensors_.buffers}) {
    for (const auto& [name, tensor] : *tensors) weights[name] = tensor.detach();
  }
  return weights;
}

}  // namespace stretto
