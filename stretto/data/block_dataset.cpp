#include "stretto/data/block_dataset.h"

#include <algorithm>

#include "stretto/data/packing.h"
#include "stretto/token_corpus/blocks.h"

namespace stretto::data {
namespace {

constexpr int64_t ignored_label = -100;

// Returns for each row of `batch` the id of the next row of its sequence.
Tensor next_ids(const Batch& batch) {
  const Tensor &ids = batch.at("input_ids"), &cu_seqlens = batch.at("cu_seqlens");
  Tensor labels = at::full({ids.size(0)}, ignored_label, at::kLong);
  const int64_t *id = ids.const_data_ptr<int64_t>(), *begins = cu_seqlens.const_data_ptr<int64_t>();
  int64_t* const label = labels.mutable_data_ptr<int64_t>();
  for (int64_t sequence = 0; sequence + 1 < cu_seqlens.size(0); ++sequence)
    std::copy(id + begins[sequence] + 1, id + begins[sequence + 1], label + begins[sequence]);
  return labels;
}

}  // namespace

BlockDataset::BlockDataset(std::shared_ptr<const token_corpus::Blocks> blocks, int64_t pad_to_multiple_of)
    : blocks_(std::move(blocks)), pad_to_multiple_of_(pad_to_multiple_of) {}
BlockDataset::~BlockDataset() = default;

int64_t BlockDataset::size() const { return blocks_->size(); }
int32_t BlockDataset::length_of(int64_t block) const { return blocks_->length(block); }
int64_t BlockDataset::total_length() const { return blocks_->tokens(); }
int32_t BlockDataset::block_size() const { return blocks_->block_size(); }
std::string BlockDataset::fingerprint() const { return blocks_->fingerprint(); }

Batch BlockDataset::pack(std::span<const int64_t> samples) const {
  std::vector<token_corpus::Block> blocks;
  for (const int64_t sample : samples) blocks.push_back(blocks_->read(sample));
  const std::vector<int32_t> types(static_cast<size_t>(block_size()));
  std::vector<TokenSequence> sequences;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto& [ids, starts, first_predicted] = blocks[i];
    for (size_t document = 0; document < starts.size(); ++document) {
      const auto begin = static_cast<size_t>(starts[document]);
      const size_t end =
          document + 1 < starts.size() ? static_cast<size_t>(starts[document + 1]) : ids.size();
      sequences.push_back(
          {std::span(ids).subspan(begin, end - begin), std::span(types).first(end - begin), samples[i]});
    }
  }
  Batch batch = pack_sequences(sequences, pad_to_multiple_of_);
  batch.sample_ids.assign(samples.begin(), samples.end());
  batch.count = std::ssize(samples);
  if (blocks.empty()) return batch;
  const Tensor labels = next_ids(batch), cu_samples = at::zeros({batch.count + 1}, at::kLong);
  int64_t row = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].first_predicted > 1)
      labels.slice(0, row, row + blocks[i].first_predicted - 1).fill_(ignored_label);
    row += std::ssize(blocks[i].ids);
    cu_samples.mutable_data_ptr<int64_t>()[i + 1] = row;
  }
  batch.tensors["labels"] = labels;
  batch.tensors["cu_samples"] = cu_samples;
  return batch;
}

}  // namespace stretto::data
