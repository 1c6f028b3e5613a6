#include "stretto/token_corpus/mixture.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto::token_corpus {
namespace {

// floor(a * b / c); a * b may exceed 64 bits.
int64_t scaled(int64_t a, int64_t b, int64_t c) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<int64_t>(static_cast<Wide>(a) * static_cast<Wide>(b) / static_cast<Wide>(c));
}

void check_parts(const std::vector<WeightedBlocks>& parts) {
  if (parts.empty()) throw ConfigError("a mixture of no corpora is not possible");
  for (const auto& [blocks, weight] : parts) {
    if (!(weight > 0) || !std::isfinite(weight))
      throw ConfigError("a weight of {} is not possible; expected a number above 0", weight);
    if (blocks->block_size() == parts.front().blocks->block_size()) continue;
    throw ConfigError("corpora with blocks of {} and {} tokens cannot be mixed",
                      parts.front().blocks->block_size(), blocks->block_size());
  }
}

}  // namespace

Mixture::Mixture(const std::vector<WeightedBlocks>& parts) {
  check_parts(parts);
  double longest = 0;  // blocks per unit of weight of the part that needs the longest sequence
  for (const auto& [blocks, weight] : parts)
    longest = std::max(longest, static_cast<double>(blocks->size()) / weight);
  counts_.push_back(0);
  for (const auto& [blocks, weight] : parts) {
    const double wanted = std::round(longest * weight);
    constexpr double most = 1e17;
    if (counts_.back() + wanted > most)
      throw ConfigError(
          "a weight of {} makes the mixture longer than 10^17 blocks; choose weights that differ less",
          weight);
    counts_.push_back(counts_.back() + std::max(blocks->size(), static_cast<int64_t>(wanted)));
    parts_.push_back(blocks);
  }
}

// Halves the set of parts until one is left. Of the first n blocks of a set with `all` blocks in total,
// floor(n * left / all) belong to its left half, which has `left` blocks.
Mixture::Source Mixture::source(int64_t block) const {
  size_t begin = 0, end = parts_.size();
  while (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    const int64_t left = counts_[middle] - counts_[begin], all = counts_[end] - counts_[begin];
    const int64_t before = scaled(block, left, all);
    if (scaled(block + 1, left, all) > before) {
      block = before;
      end = middle;
    } else {
      block -= before;
      begin = middle;
    }
  }
  return {begin, block % parts_[begin]->size()};
}

int32_t Mixture::length(int64_t block) const {
  const auto [part, index] = source(block);
  return parts_[part]->length(index);
}

int64_t Mixture::tokens() const {
  int64_t tokens = 0;
  for (size_t part = 0; part < parts_.size(); ++part) {
    const CorpusBlocks& blocks = *parts_[part];
    const int64_t rounds = count(part) / blocks.size(), rest = count(part) % blocks.size();
    tokens += rounds * blocks.tokens() + rest * block_size();  // only the last block of a part is shorter
  }
  return tokens;
}

Block Mixture::read(int64_t block) const {
  const auto [part, index] = source(block);
  return parts_[part]->read(index);
}

std::string Mixture::fingerprint() const {
  std::string all;
  for (size_t part = 0; part < parts_.size(); ++part)
    all += fmt::format("{} {}\n", parts_[part]->fingerprint(), count(part));
  return hash128_hex(all);
}

}  // namespace stretto::token_corpus
