#include "stretto/data/collators.h"

#include <algorithm>
#include <array>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto::data {
namespace {

bool is_sequence(const Sample& sample, const std::string& name) {
  const auto found = sample.find(name);
  return found != sample.end() && found->second.dim() == 1;
}

// Pads the sequences `name` of all samples to the same length.
void pad_sequences(std::vector<Sample>& samples, const std::string& name, int64_t value,
                   const CollatorForLongestSequence& options) {
  if (!is_sequence(samples[0], name)) return;
  int64_t length = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!is_sequence(samples[i], name))
      throw DataError("sample {} of the batch has no sequence \"{}\", which its first one has", i, name);
    length = std::max(length, samples[i].at(name).size(0));
  }
  const int64_t multiple = options.pad_to_multiple_of;
  length = (length + multiple - 1) / multiple * multiple;
  for (Sample& sample : samples) {
    const Tensor& sequence = sample.at(name);
    const int64_t missing = length - sequence.size(0);
    const std::array<int64_t, 2> sides = {options.pad_left ? missing : 0, options.pad_left ? 0 : missing};
    sample.at(name) = at::constant_pad_nd(sequence, sides, value);
  }
}

// A number in [0, 1).
double uniform(std::array<uint64_t, 4> place) { return static_cast<double>(hash64(place) >> 11) * 0x1p-53; }

}  // namespace

Batch CollatorForLongestSequence::operator()(std::span<const Sample> samples) const {
  if (pad_to_multiple_of < 1)
    throw ConfigError("pad_to_multiple_of is {}; expected at least 1", pad_to_multiple_of);
  std::vector<Sample> padded(samples.begin(), samples.end());
  if (padded.empty()) return {};
  for (size_t i = 0; i < padded.size(); ++i) {
    if (!is_sequence(padded[i], "input_ids"))
      throw DataError("sample {} of the batch has no sequence \"input_ids\"", i);
    if (!padded[i].contains("attention_mask"))
      padded[i]["attention_mask"] = at::ones_like(padded[i].at("input_ids"));
  }
  pad_sequences(padded, "input_ids", pad_token_id, *this);
  pad_sequences(padded, "attention_mask", 0, *this);
  pad_sequences(padded, "token_type_ids", 0, *this);
  pad_sequences(padded, "labels", label_pad_token_id, *this);
  return pad_and_stack(padded);
}

Batch CollatorForSeq2Seq::operator()(std::span<const Sample> samples) const {
  Batch batch = padding(samples);
  if (!decoder_start_token_id || samples.empty()) return batch;
  if (!batch.has("labels") || batch.at("labels").dim() != 2)
    throw DataError("decoder_start_token_id is set, but samples have no sequence \"labels\"");
  const Tensor& labels = batch.at("labels");
  const Tensor start = at::full({labels.size(0), 1}, *decoder_start_token_id, labels.options());
  const Tensor moved = at::cat({start, labels.slice(1, 0, labels.size(1) - 1)}, 1);
  batch.tensors["decoder_input_ids"] =
      moved.masked_fill(moved == padding.label_pad_token_id, padding.pad_token_id);
  return batch;
}

Batch CollatorForLanguageModeling::operator()(std::span<const Sample> samples) const {
  Batch batch = padding(samples);
  if (samples.empty()) return batch;
  batch.tensors["labels"] =
      batch.at("input_ids").masked_fill(batch.at("attention_mask") == 0, padding.label_pad_token_id);
  return batch;
}

MaskedTokens mask_tokens(const Tensor& input_ids, std::span<const int64_t> sample_ids, uint64_t key,
                         const TokenMasking& masking) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (!is_share(masking.probability) || !is_share(masking.mask_share) || !is_share(masking.random_share) ||
      masking.mask_share + masking.random_share > 1) {
    throw ConfigError(
        "mask_tokens: probability {}, mask_share {}, random_share {}; expected numbers from 0 to 1, the shares together at most 1",
        masking.probability, masking.mask_share, masking.random_share);
  }
  if (masking.vocab_size < 1)
    throw ConfigError("mask_tokens: vocab_size is {}; expected at least 1", masking.vocab_size);
  if (input_ids.dim() != 2 || input_ids.scalar_type() != at::kLong ||
      input_ids.size(0) != std::ssize(sample_ids)) {
    throw ShapeError("mask_tokens: input_ids are {} for {} sample ids; expected [{}, T] Long",
                     describe(input_ids), sample_ids.size(), sample_ids.size());
  }
  const Tensor ids = input_ids.cpu().contiguous().clone();
  const Tensor labels = at::full_like(ids, -100);
  auto* id = ids.data_ptr<int64_t>();
  auto* label = labels.data_ptr<int64_t>();
  for (const int64_t sample : sample_ids) {
    uint64_t place = 0;
    for (int64_t t = 0; t < ids.size(1); ++t, ++id, ++label) {
      if (std::ranges::find(masking.special_ids, *id) != masking.special_ids.end()) continue;
      const auto draw = [&, at = place](uint64_t which) {
        return uniform({key, static_cast<uint64_t>(sample), at, which});
      };
      ++place;
      if (draw(0) >= masking.probability) continue;
      *label = *id;
      const double share = draw(1);
      if (share < masking.mask_share) {
        *id = masking.mask_token_id;
      } else if (share < masking.mask_share + masking.random_share) {
        *id = static_cast<int64_t>(draw(2) * static_cast<double>(masking.vocab_size));
      }
    }
  }
  return {ids.to(input_ids.device()), labels.to(input_ids.device())};
}

}  // namespace stretto::data
