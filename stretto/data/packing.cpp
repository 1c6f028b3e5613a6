#include "stretto/data/packing.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace stretto::data {

namespace {

bool is_a_sample_repeated(std::span<const TokenSequence> sequences) {
  std::set<int64_t> samples;
  for (const TokenSequence& sequence : sequences) samples.insert(sequence.sample);
  return samples.size() < sequences.size();
}

}  // namespace

Batch pack_sequences(std::span<const TokenSequence> sequences, int64_t multiple_of) {
  Batch batch;
  batch.count = std::ssize(sequences);
  if (sequences.empty()) return batch;
  int64_t tokens = 0;
  for (const TokenSequence& sequence : sequences) tokens += std::ssize(sequence.ids);
  const int64_t rows = (tokens + multiple_of - 1) / multiple_of * multiple_of;
  const auto new_tensor = [](int64_t elements) { return at::empty({elements}, at::kLong); };
  const Tensor ids = new_tensor(rows), types = new_tensor(rows), positions = new_tensor(rows),
               owners = new_tensor(rows), cu_seqlens = new_tensor(batch.count + 1);
  // If no sample is repeated, the places equal the positions, so that both names share one tensor.
  const bool own_places = is_a_sample_repeated(sequences);
  const Tensor places = own_places ? new_tensor(rows) : positions;
  std::map<int64_t, int64_t> rows_of_sample;  // number of rows so far
  int64_t begin = 0, index = 0;
  for (const TokenSequence& sequence : sequences) {
    const int64_t length = std::ssize(sequence.ids);
    int64_t* const begins = cu_seqlens.data_ptr<int64_t>();
    int64_t* const position = positions.data_ptr<int64_t>() + begin;
    std::ranges::copy(sequence.ids, ids.data_ptr<int64_t>() + begin);
    std::ranges::copy(sequence.types, types.data_ptr<int64_t>() + begin);
    std::iota(position, position + length, int64_t{0});
    if (own_places) {
      int64_t& place = rows_of_sample[sequence.sample];
      std::iota(places.data_ptr<int64_t>() + begin, places.data_ptr<int64_t>() + begin + length, place);
      place += length;
    }
    std::fill_n(owners.data_ptr<int64_t>() + begin, length, sequence.sample);
    batch.sample_ids.push_back(sequence.sample);
    begins[index++] = begin;
    begin += length;
    begins[index] = begin;
  }
  // Padding copies the first token, so that no additional row of an embedding table is read.
  for (const Tensor& tensor : {ids, types, positions, places, owners}) {
    int64_t* const values = tensor.data_ptr<int64_t>();
    std::fill(values + tokens, values + rows, values[0]);
  }
  batch.tensors = {{"input_ids", ids},  {"token_type_ids", types}, {"position_ids", positions},
                   {"samples", owners}, {"places", places},        {"cu_seqlens", cu_seqlens}};
  return batch;
}

}  // namespace stretto::data
