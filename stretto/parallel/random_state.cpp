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

namespace stretto {
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

std::string entry_name(int rank) { return fmt::format("random.{}", rank); }

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

void separate_random_numbers(int rank) {
  if (rank == 0) return;
  at::manual_seed(hash64(std::array<uint64_t, 2>{hash64(random_state()), static_cast<uint64_t>(rank)}));
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

void RandomState::add_state(State& state, int rank, int writers) {
  const std::string own = random_state();
  bytes_ = at::empty({static_cast<int64_t>(own.size())}, at::kByte);
  std::memcpy(bytes_.mutable_data_ptr(), own.data(), own.size());
  writers_ = writers;
  for (int writer = 0; writer < writers; ++writer) {
    Entry entry = whole_entry(entry_name(writer), bytes_.sizes().vec(), bytes_);
    if (writer != rank) entry.pieces.clear();
    state.tensors.push_back(std::move(entry));
  }
}

void RandomState::resume(int rank) const {
  if (rank >= writers_) return;
  set_random_state({static_cast<const char*>(bytes_.const_data_ptr()), bytes_.nbytes()});
}

int RandomState::writers(const std::set<std::string>& names) {
  int count = 0;
  while (names.contains(entry_name(count))) ++count;
  return count;
}

}  // namespace stretto
