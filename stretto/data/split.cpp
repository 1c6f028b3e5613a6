#include "stretto/data/split.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"

namespace stretto::data {
namespace {

// Deals samples, longest first, in rounds of one a rank; in a round the longest goes to the rank that has the
// fewest tokens. Two ranks never drift further apart than the longest sample of one round.
class Dealer {
 public:
  explicit Dealer(int ranks) : tokens_(static_cast<size_t>(ranks)), order_(tokens_.size()) {}

  // The part of `rank` in one micro-step. `samples` are in descending order of length.
  std::vector<int64_t> deal(std::span<const int64_t> samples, std::span<const int32_t> lengths, size_t rank) {
    std::vector<int64_t> part;
    for (size_t i = 0; i < samples.size(); ++i) {
      const size_t turn = i % order_.size();
      if (turn == 0) start_round();
      const size_t receiver = order_[turn];
      tokens_[receiver] += lengths[static_cast<size_t>(samples[i])];
      if (receiver == rank) part.push_back(samples[i]);
    }
    return part;
  }

 private:
  void start_round() {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return tokens_[a] < tokens_[b]; });
  }

  std::vector<int64_t> tokens_;  // dealt to each rank so far
  std::vector<size_t> order_;    // ranks in the order in which they receive in this round
};

// Samples in descending order of length, reordered so that cutting them into `steps` gives parts alike in tokens: the
// steps take one each, in turns that go forth and back. The parts stay in descending order.
std::vector<int64_t> deal_to_steps(const std::vector<int64_t>& samples, size_t steps) {
  std::vector<std::vector<int64_t>> parts(steps);
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t round = i / steps, turn = i % steps;
    const bool last_round = (round + 1) * steps > samples.size();
    // The last steps are those that get one more.
    const size_t step = round % 2 == 1 || last_round ? steps - 1 - turn : turn;
    parts[step].push_back(samples[i]);
  }
  std::vector<int64_t> dealt;
  for (const auto& part : parts) dealt.insert(dealt.end(), part.begin(), part.end());
  return dealt;
}

void check_rank(int ranks, int rank) {
  if (rank < 0 || rank >= ranks) throw ConfigError("rank {} of {} ranks is not possible", rank, ranks);
}

}  // namespace

int64_t count_micro_steps(int64_t samples, int ranks, int64_t batch_size) {
  if (ranks < 1 || batch_size < 1) {
    throw ConfigError("{} ranks with {} samples each are not possible; both need at least 1", ranks,
                      batch_size);
  }
  const int64_t samples_a_rank = samples / ranks + (samples % ranks != 0);
  return samples_a_rank / batch_size + (samples_a_rank % batch_size != 0);
}

MicroSteps split_batch(std::span<const int64_t> batch, std::span<const int32_t> lengths, int ranks, int rank,
                       int64_t micro_steps, bool alike_in_length) {
  check_rank(ranks, rank);
  if (micro_steps < (batch.empty() ? 0 : 1)) {
    throw ConfigError("{} samples cannot be worked on in {} micro-steps", batch.size(), micro_steps);
  }
  const auto length = [&](int64_t sample) { return lengths[static_cast<size_t>(sample)]; };
  std::vector<int64_t> samples(batch.begin(), batch.end());
  std::stable_sort(samples.begin(), samples.end(),
                   [&](int64_t a, int64_t b) { return length(a) > length(b); });

  const auto steps = static_cast<size_t>(micro_steps);
  if (!alike_in_length) samples = deal_to_steps(samples, steps);
  MicroSteps parts;
  Dealer dealer(ranks);
  size_t begin = 0;
  for (size_t step = 0; step < steps; ++step) {
    // The first steps may hold the longest samples, so they are the ones without the extra sample.
    const size_t count = samples.size() / steps + (step >= steps - samples.size() % steps);
    parts.push_back(
        dealer.deal(std::span(samples).subspan(begin, count), lengths, static_cast<size_t>(rank)));
    begin += count;
  }
  return parts;
}

MicroSteps evaluation_batches(std::span<const int32_t> lengths, int ranks, int rank, int64_t batch_size) {
  std::vector<int64_t> samples(lengths.size());
  std::iota(samples.begin(), samples.end(), int64_t{0});
  return split_batch(samples, lengths, ranks, rank,
                     count_micro_steps(std::ssize(samples), ranks, batch_size));
}

}  // namespace stretto::data
