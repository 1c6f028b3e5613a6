#include "stretto/parallel/random_state.h"

#include <array>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>

#include "stretto/base/hash.h"
#include "stretto/comm/mesh.h"

namespace stretto::parallel {
namespace {

// Whether the module is one of `Layers` with p > 0.
template <class... Layers>
bool is_dropout(const torch::nn::Module& module) {
  const auto drops = [&](const auto* layer) { return layer != nullptr && layer->options.p() > 0; };
  return (... || drops(dynamic_cast<const Layers*>(&module)));
}
template <class... Layers>
bool is_layer_with_dropout(const torch::nn::Module& module) {
  const auto drops = [&](const auto* layer) { return layer != nullptr && layer->options.dropout() > 0; };
  return (... || drops(dynamic_cast<const Layers*>(&module)));
}

constexpr const char* cpu_entry = "random";
constexpr const char* gpu_entry = "random.cuda";

int first_rank_of_layers(const Mesh& mesh) {
  Group& parts = mesh.group(Axis::tp);
  const int own = mesh.world().rank();
  return parts.size() == 1 ? own : std::stoi(parts.broadcast_bytes(std::to_string(own), 0));
}

std::string entry_name(const std::string& name, int position) { return fmt::format("{}.{}", name, position); }

}  // namespace

std::string random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

void set_random_state(const std::string& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  at::Tensor bytes = at::empty({static_cast<int64_t>(state.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
  const std::lock_guard lock(generator.mutex());
  generator.set_state(bytes);
}

void separate_random_numbers(const Mesh& mesh) {
  Group& parts = mesh.group(Axis::tp);
  std::string state = random_state();
  if (parts.size() > 1) state = parts.broadcast_bytes(parts.rank() == 0 ? state : "", 0);
  const int position = mesh.position(Axes::sum);
  if (position == 0 && parts.size() == 1) return;
  // It seeds the generators of GPUs, too.
  at::manual_seed(hash64(std::array<uint64_t, 2>{hash64(state), static_cast<uint64_t>(position)}));
  if (position == 0) set_random_state(state);  // as a single rank would draw them
}

bool has_torch_dropout(const torch::nn::Module& module) {
  using namespace torch::nn;
  if (is_dropout<DropoutImpl, Dropout2dImpl, Dropout3dImpl, AlphaDropoutImpl, FeatureAlphaDropoutImpl>(
          module))
    return true;
  if (is_layer_with_dropout<RNNImpl, LSTMImpl, GRUImpl, MultiheadAttentionImpl>(module)) return true;
  for (const auto& child : module.children()) {
    if (has_torch_dropout(*child)) return true;
  }
  return false;
}

RandomState::RandomState(const Mesh& mesh, at::Device device)
    : position_(mesh.position(Axes::sum)),
      positions_(mesh.size(Axes::sum)),
      ranks_(mesh.world().size()),
      first_rank_(first_rank_of_layers(mesh)),
      saves_(mesh.position(Axis::tp) == 0),
      device_(device) {}

void RandomState::add_state(State& state) {
  const std::string own = random_state();
  bytes_ = at::empty({static_cast<int64_t>(own.size())}, at::kByte);
  std::memcpy(bytes_.mutable_data_ptr(), own.data(), own.size());
  add_entries(state, cpu_entry, bytes_, /*saves=*/true);
  of_gpu_ = at::zeros({2}, at::kLong);
  if (device_.is_cuda()) {
    const at::Generator& generator = at::globalContext().defaultGenerator(device_);
    of_gpu_[0] = static_cast<int64_t>(generator.current_seed());
    of_gpu_[1] = static_cast<int64_t>(generator.get_offset());
  }
  add_entries(state, gpu_entry, of_gpu_, device_.is_cuda());
}

// `saves`: whether a table that is being saved gets the entries. One that is being filled has those that were
// saved.
void RandomState::add_entries(State& state, const std::string& name, const Tensor& values, bool saves) const {
  const auto is_listed = [&](int position) {
    return state.stored ? state.stored->contains(entry_name(name, position)) : saves && position < positions_;
  };
  const int own = own_entry(state, name);
  for (int position = 0; is_listed(position); ++position) {
    Entry entry = whole_entry(entry_name(name, position), values.sizes().vec(), values);
    if (position != own || !(state.stored || saves_)) entry.pieces.clear();
    state.tensors.push_back(std::move(entry));
  }
}

// The number of this rank's entry. As many entries as ranks of a mesh that divides layers are by rank.
int RandomState::own_entry(const State& state, const std::string& name) const {
  if (!state.stored || ranks_ == positions_) return position_;
  const bool is_by_rank = state.stored->contains(entry_name(name, ranks_ - 1)) &&
                          !state.stored->contains(entry_name(name, ranks_));
  return is_by_rank ? first_rank_ : position_;
}

void RandomState::resume(const State& state) const {
  const auto has_own = [&](const std::string& name) {
    return state.stored->contains(entry_name(name, own_entry(state, name)));
  };
  if (has_own(cpu_entry))
    set_random_state({static_cast<const char*>(bytes_.const_data_ptr()), bytes_.nbytes()});
  if (!device_.is_cuda() || !has_own(gpu_entry)) return;
  at::Generator generator = at::globalContext().defaultGenerator(device_);
  generator.set_current_seed(static_cast<uint64_t>(of_gpu_[0].item<int64_t>()));
  generator.set_offset(static_cast<uint64_t>(of_gpu_[1].item<int64_t>()));
}

}  // namespace stretto::parallel
