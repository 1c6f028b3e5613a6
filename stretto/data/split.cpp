#include "stretto/data/split.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/range.h"
#include "stretto/base/strings.h"

namespace stretto::data {
namespace {

// Reorders samples, which are in descending order of length, so that dividing them into `parts` gives about
// the same number of tokens each: the parts take one sample per turn, in alternating directions. Each part
// stays in descending order.
std::vector<int64_t> deal_to_parts(const std::vector<int64_t>& samples, size_t parts) {
  std::vector<std::vector<int64_t>> dealt(parts);
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t round = i / parts, turn = i % parts;
    const bool last_round = (round + 1) * parts > samples.size();
    // The last parts get one more sample.
    const size_t part = round % 2 == 1 || last_round ? parts - 1 - turn : turn;
    dealt[part].push_back(samples[i]);
  }
  std::vector<int64_t> reordered;
  for (const auto& part : dealt) reordered.insert(reordered.end(), part.begin(), part.end());
  return reordered;
}

}  // namespace

int64_t count_micro_batches(int64_t samples, int world_size, int64_t batch_size) {
  if (world_size < 1 || batch_size < 1) {
    throw ConfigError("{} with {} each are not possible; both must be at least 1",
                      counted(world_size, "rank"), counted(batch_size, "sample"));
  }
  const int64_t samples_per_rank = samples / world_size + (samples % world_size != 0);
  return samples_per_rank / batch_size + (samples_per_rank % batch_size != 0);
}

Dealer::Dealer(int world_size, int rank)
    : rank_(static_cast<size_t>(rank)),
      tokens_(static_cast<size_t>(std::max(world_size, 0))),
      order_(tokens_.size()) {
  if (rank < 0 || rank >= world_size)
    throw ConfigError("rank {} of {} is not possible", rank, counted(world_size, "rank"));
}

std::vector<int64_t> Dealer::deal(std::span<const int64_t> samples, const SampleLengths& lengths) {
  std::vector<int64_t> part;
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t turn = i % order_.size();
    if (turn == 0) start_round();
    const size_t receiver = order_[turn];
    tokens_[receiver] += lengths.of(samples[i]);
    if (receiver == rank_) part.push_back(samples[i]);
  }
  return part;
}

void Dealer::start_round() {
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return tokens_[a] < tokens_[b]; });
}

MicroBatches split_batch(std::span<const int64_t> batch, const SampleLengths& lengths, int world_size,
                         int rank, int64_t micro_batches, bool alike_in_length) {
  Dealer dealer(world_size, rank);
  if (micro_batches < (batch.empty() ? 0 : 1)) {
    throw ConfigError("{} samples cannot be cut into {} micro-batches", batch.size(), micro_batches);
  }
  std::vector<int64_t> samples(batch.begin(), batch.end());
  std::stable_sort(samples.begin(), samples.end(),
                   [&](int64_t a, int64_t b) { return lengths.of(a) > lengths.of(b); });
  if (!alike_in_length) samples = deal_to_parts(samples, static_cast<size_t>(micro_batches));
  MicroBatches parts;
  for (int64_t part = 0; part < micro_batches; ++part) {
    // Parts with one more sample come last: they are not those with the longest samples.
    const Range of = part_range(std::ssize(samples), micro_batches, part);
    parts.push_back(dealer.deal(std::span(samples.begin() + of.begin, samples.begin() + of.end), lengths));
  }
  return parts;
}

}  // namespace stretto::data
