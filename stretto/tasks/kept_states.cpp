#include "stretto/tasks/kept_states.h"

#include <atomic>

namespace stretto::tasks {
namespace {

// Returns sequence b of a packed batch of whole words as a separate batch.
Batch sequence_of(const Batch& batch, const Tensor& bounds, int64_t b, int64_t words_before) {
  const int64_t begin = bounds[b].item<int64_t>(), end = bounds[b + 1].item<int64_t>();
  Batch one;
  one.sample_ids = {batch.sample_ids[static_cast<size_t>(b)]};
  one.count = 1;
  for (const char* name : {"input_ids", "token_type_ids", "position_ids", "samples", "words"})
    one.tensors[name] = batch.at(name).slice(0, begin, end).contiguous();
  const Tensor words = batch.at("token_words").slice(0, begin, end);
  one.tensors["token_words"] = at::where(words.ge(0), words - words_before, words);
  one.tensors["cu_seqlens"] = at::tensor({int64_t{0}, end - begin}, bounds.options()).to(words.device());
  return one;
}

}  // namespace

KeptStates::KeptStates(StateStorage storage, std::span<const int32_t> words, int64_t width,
                       at::ScalarType dtype, const Mesh& mesh, at::Device device)
    : begins_{0} {
  for (const int32_t count : words) begins_.push_back(begins_.back() + count);
  if (storage == StateStorage::none || begins_.back() == 0) return;
  const std::vector<int64_t> shape = {begins_.back(), width};
  if (storage == StateStorage::cpu) {
    states_ = mesh.world().common_memory(shape[0] * shape[1], dtype);
    if (states_.defined()) {
      states_ = states_.view(shape);
      known_ = mesh.world().common_memory(std::ssize(words), at::kLong);
      return;
    }
    device = at::kCPU;
  }
  states_ = at::empty(shape, at::TensorOptions(dtype).device(device));
  known_ = at::zeros({std::ssize(words)}, at::kLong);
}

void KeptStates::add_to(Batch& batch, const FrozenStates& model, const nn::Context& context) {
  const Tensor bounds = batch.at("cu_seqlens").to(at::kCPU);
  std::vector<Tensor> parts;
  int64_t words = 0;  // before this sample's
  for (int64_t b = 0; b < batch.count; ++b) {
    const auto sample = static_cast<size_t>(batch.sample_ids[static_cast<size_t>(b)]);
    const int64_t begin = begins_[sample], end = begins_[sample + 1];
    if (begin == end) continue;
    const auto compute = [&] { return model.compute(sequence_of(batch, bounds, b, words), context); };
    if (!states_.defined()) {
      parts.push_back(compute());
    } else {
      // Two ranks that compute the same sample write the same values.
      const std::atomic_ref<int64_t> known(known_.data_ptr<int64_t>()[sample]);
      if (parts.emplace_back(states_.slice(0, begin, end)); known.load(std::memory_order_acquire) == 0) {
        parts.back().copy_(compute());
        known.store(1, std::memory_order_release);
      }
    }
    words += end - begin;
  }
  if (parts.empty()) return;
  batch.tensors["frozen_states"] = at::cat(parts).to(batch.at("input_ids").device());
}

}  // namespace stretto::tasks
