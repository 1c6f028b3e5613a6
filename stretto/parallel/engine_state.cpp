#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/parallel/engine.h"
#include "stretto/tensor/file_memory.h"
#include "stretto/tensor/finite.h"

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
  offload_state();
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
  return named(master);
}

NamedTensors Engine::weights_at_first(const std::filesystem::path& folder) {
  catch_up();
  synchronise_buffers();
  const bool first = ranks_.all.rank() == 0;
  Tensor master = arena_.buffers().master;
  if (arena_.master_is_sharded() && (ranks_.replicas == nullptr || ranks_.replicas->rank() == 0)) {
    const at::ScalarType dtype = master.scalar_type();
    bool in_file = first;
    if (first) {
      try {
        master = file_memory(folder, arena_.elements(), dtype);
      } catch (const IoError& error) {
        log::warning("{}; the weights are collected in memory instead", error.what());
        master = at::empty({arena_.elements()}, dtype);
        in_file = false;
      }
    }
    gather_at_first(master, in_file);
  }
  return first ? named(master) : NamedTensors();
}

// Gathers every rank's shard of the master weights in `whole` on the first rank, which may be on another device.
void Engine::gather_at_first(const Tensor& whole, bool in_file) const {
  constexpr int64_t most = 32 << 10;  // elements per message, of which 64 may wait in shared memory
  Group& group = ranks_.shard;
  const Tensor& mine = arena_.buffers().master;
  const bool first = group.rank() == 0;
  Tensor received;
  for (size_t rank = 0; rank < arena_.shards().size(); ++rank) {
    const Range& shard = arena_.shards()[rank];
    const int sender = static_cast<int>(rank);
    if (!first && group.rank() != sender) continue;
    for (int64_t begin = shard.begin; begin < shard.end; begin += most) {
      const int64_t end = std::min(begin + most, shard.end);
      Tensor part;
      if (group.rank() == sender) part = mine.slice(0, begin - shard.begin, end - shard.begin);
      if (!first) {
        group.send(part, 0).wait();
        continue;
      }
      if (sender != 0) {
        if (!received.defined()) received = at::empty({most}, mine.options());
        part = received.slice(0, 0, end - begin);
        group.recv(part, sender).wait();
      }
      const Tensor target = whole.slice(0, begin, end);
      target.copy_(part);
      if (in_file) leave_to_file(target);
    }
  }
}

NamedTensors Engine::named(const Tensor& master) const {
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

// Each rank checks what it answers for. In the order of names, as in a model file.
std::string Engine::first_nonfinite_weight() {
  catch_up();
  std::vector<int64_t> by_name(arena_.parameters().size());
  std::iota(by_name.begin(), by_name.end(), int64_t{0});
  std::ranges::sort(by_name, {}, [&](int64_t parameter) { return parameter_name(parameter); });
  int64_t first = -1;
  for (size_t place = 0; place < by_name.size() && first < 0; ++place) {
    const auto& parameter = arena_.parameters()[static_cast<size_t>(by_name[place])];
    for (const Piece& piece : arena_.master_entry(parameter, parameter.info.name).pieces) {
      if (!is_finite(piece.data)) first = static_cast<int64_t>(place);
    }
  }
  if (arena_.shards().size() > 1) first = least_of_shards(first);
  return first < 0 ? "" : parameter_name(by_name[static_cast<size_t>(first)]);
}

}  // namespace stretto
