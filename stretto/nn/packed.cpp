#include "stretto/nn/packed.h"

#include <array>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/kernels/loop_types.h"

namespace stretto::nn {

namespace {

// Throws if a sample has several sequences. Without places, positions are used as places, which is correct
// only for samples of one sequence.
void require_a_sample_per_sequence(const Tensor& sample_of_sequence) {
  const Tensor samples = sample_of_sequence.to(at::kCPU);
  std::map<int64_t, int64_t> sequence_of;
  for (int64_t b = 0; b < samples.numel(); ++b) {
    const auto [first, is_new] = sequence_of.try_emplace(samples.const_data_ptr<int64_t>()[b], b);
    if (is_new) continue;
    throw DataError(
        "packed batch: sequences {} and {} are both of sample {}, so their dropout masks would be equal; add \"places\", each token's row in its sample",
        first->second, b, first->first);
  }
}

}  // namespace

PackedLayout::PackedLayout(const Batch& source)
    : cu_seqlens(source.at("cu_seqlens")),
      position_ids(source.at("position_ids")),
      samples(source.at("samples")),
      places(source.has("places") ? source.at("places") : position_ids) {
  batch = cu_seqlens.numel() - 1;
  tokens = position_ids.numel();
  const Tensor bounds = cu_seqlens.to(at::kCPU);
  const int64_t* bound = bounds.const_data_ptr<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    if (bound[b + 1] <= bound[b]) throw DataError("packed batch: sequence {} is empty", b);
    max_length = std::max(max_length, bound[b + 1] - bound[b]);
  }
  if (batch < 1 || bound[0] != 0 || bound[batch] > tokens || samples.numel() != tokens) {
    throw DataError("packed batch: cu_seqlens runs from {} to {}, but there are {} tokens and {} sample ids",
                    bound[0], bound[std::max<int64_t>(batch, 0)], tokens, samples.numel());
  }
  used = bound[batch];
  if (places.numel() != tokens)
    throw DataError("packed batch: there are {} tokens, but {} places", tokens, places.numel());
  sample_of_sequence = samples.index_select(0, first_rows());
  if (!source.has("places")) require_a_sample_per_sequence(sample_of_sequence);
  first_places = places.is_same(position_ids) ? at::zeros_like(sample_of_sequence)
                                              : (places - position_ids).index_select(0, first_rows());
}

PackedLayout PackedLayout::first_tokens() const {
  PackedLayout first;
  first.cu_seqlens = at::arange(batch + 1, cu_seqlens.options());
  first.position_ids = at::zeros({batch}, position_ids.options());
  first.samples = first.sample_of_sequence = sample_of_sequence;
  first.places = first.first_places = first_places;
  first.batch = first.tokens = first.used = batch;
  first.max_length = 1;
  return first;
}

PackedLayout PackedLayout::last_tokens() const {
  PackedLayout last = first_tokens();
  last.position_ids = position_ids.index_select(0, last_rows());
  last.places = places.index_select(0, last_rows());
  last.are_last = true;
  return last;
}

PackedLayout PackedLayout::padded_to_multiple_of(int64_t multiple) const {
  PackedLayout padded = *this;
  padded.tokens = (tokens + multiple - 1) / multiple * multiple;
  if (padded.tokens == tokens) return padded;
  for (Tensor* of_rows : {&padded.position_ids, &padded.samples, &padded.places})
    *of_rows = at::constant_pad_nd(*of_rows, {0, padded.tokens - tokens}, 0);
  return padded;
}

Kernels parse_kernels(const std::string& name) {
  if (name == "fast") return Kernels::fast;
  if (name == "reference") return Kernels::reference;
  throw ConfigError("kernels: \"{}\" is neither fast nor reference", name);
}

bool Context::fast(const Tensor& x) const { return kernels == Kernels::fast && kernels::has_loops(x); }

kernels::Dropout Context::dropout(double p, uint64_t site) const {
  if (!(p >= 0 && p < 1)) throw ConfigError("dropout: found {}; expected a probability 0 <= p < 1", p);
  if (!training || p == 0) return {};
  return {p, hash64(std::array<uint64_t, 2>{key, site})};
}

}  // namespace stretto::nn
