#include "stretto/text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

constexpr double unknown_penalty = 10;
constexpr uint32_t unreached = ~uint32_t{0};

std::vector<std::pair<std::string_view, int32_t>> keys_of(const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  for (const auto& [token, id] : vocabulary.entries()) keys.emplace_back(token, id);
  return keys;
}

size_t code_point_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

Unigram::Unigram(Vocabulary tokens, std::vector<double> scores, UnigramOptions options,
                 const std::string& name)
    : Model(std::move(tokens)),
      name_(name),
      scores_(static_cast<size_t>(vocabulary().id_limit())),
      options_(options),
      unknown_score_(std::numeric_limits<double>::infinity()),
      trie_(keys_of(vocabulary())) {
  const auto& entries = vocabulary().entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!std::isfinite(scores[i]))
      throw DataError("{}: the score of token \"{}\" is not a finite number", name, entries[i].token);
    scores_[static_cast<size_t>(entries[i].id)] = scores[i];
    unknown_score_ = std::min(unknown_score_, scores[i] - unknown_penalty);
  }
  if (options_.unk_id && !vocabulary().token(*options_.unk_id)) {
    throw DataError("{}: the unknown token's id {} is not among the {} tokens", name, *options_.unk_id,
                    entries.size());
  }
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_[static_cast<size_t>(byte)] = vocabulary().id(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  description_of_scores_ =
      hash128_hex({reinterpret_cast<const char*>(scores.data()), scores.size() * sizeof(double)});
}

void Unigram::tokenize(std::string_view text, std::span<const WordRange> words,
                       std::vector<TokenPiece>& out) const {
  std::vector<Path> paths;
  for (uint32_t word = 0; word < words.size(); ++word) {
    const auto [begin, end] = words[word];
    find_paths(text.substr(begin, end - begin), paths);
    const size_t before = out.size();
    uint32_t unknown_end = 0;  // end of a run of unknown characters
    const auto close_unknown = [&](uint32_t from) {
      if (unknown_end > 0) add_unknown(text, begin + from, begin + unknown_end, word, out);
      unknown_end = 0;
    };
    for (uint32_t at = end - begin; at > 0; at = paths[at].begin) {
      const Path& path = paths[at];
      if (path.id < 0) {
        if (unknown_end == 0) unknown_end = at;
        continue;
      }
      close_unknown(at);
      out.push_back({path.id, begin + path.begin, begin + at, word});
    }
    close_unknown(0);
    std::reverse(out.begin() + static_cast<ptrdiff_t>(before), out.end());
  }
}

void Unigram::find_paths(std::string_view word, std::vector<Path>& paths) const {
  paths.assign(word.size() + 1, {0, unreached, -1});
  const auto offer = [&](size_t end, double score, size_t begin, int32_t id) {
    Path& path = paths[end];
    if (path.begin == unreached || score > path.score) path = {score, static_cast<uint32_t>(begin), id};
  };
  const int32_t unknown = options_.unk_id.value_or(-1);
  for (size_t begin = 0; begin < word.size();) {
    const double score = paths[begin].score;
    const size_t one = code_point_size(word[begin]);
    bool has_one = false;
    trie_.find_prefixes(word.substr(begin), [&](size_t size, int32_t id) {
      // A text may contain the content of the unknown token itself.
      offer(begin + size, score + scores_[static_cast<size_t>(id)], begin, id == unknown ? -1 : id);
      has_one = has_one || size == one;
    });
    if (!has_one) offer(begin + one, score + unknown_score_, begin, -1);
    begin += one;
  }
}

// Appends in reverse order, since the caller reverses.
void Unigram::add_unknown(std::string_view text, uint32_t begin, uint32_t end, uint32_t word,
                          std::vector<TokenPiece>& out) const {
  const std::string_view bytes = text.substr(begin, end - begin);
  if (const auto id = vocabulary().id(bytes)) {
    out.push_back({*id, begin, end, word});
    return;
  }
  const auto byte_id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (options_.byte_fallback && std::ranges::all_of(bytes, [&](char byte) { return byte_id(byte) >= 0; })) {
    for (size_t i = bytes.size(); i > 0; --i) out.push_back({byte_id(bytes[i - 1]), begin, end, word});
    return;
  }
  if (!options_.unk_id) {
    throw DataError(
        "{}: \"{}\" cannot be made of the vocabulary's tokens, and it has no unknown token (unk_id)", name_,
        bytes);
  }
  out.push_back({*options_.unk_id, begin, end, word});
}

std::string Unigram::description() const {
  return fmt::format("Unigram\n{} {}\n{}\n", options_.unk_id.value_or(-1), options_.byte_fallback,
                     description_of_scores_);
}

}  // namespace stretto::text
