#include "stretto/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include <fmt/format.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/text/byte_level.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

constexpr uint32_t no_rule = ~uint32_t{0};
constexpr uint32_t no_symbol = ~uint32_t{0};

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

// The symbols of a word as a list, and the pairs that a rule applies to, first rule first.
struct Bpe::Workspace {
  std::vector<TokenPiece> symbols;
  std::vector<uint32_t> next;  // index of the symbol to the right
  std::vector<uint32_t> previous;
  std::vector<uint32_t> rank;   // priority of the rule for a symbol and its right neighbour
  std::vector<uint64_t> queue;  // a heap of rank << 32 | symbol; an entry whose rank has changed is stale
};

Bpe::Bpe(Vocabulary tokens, const Merges& merges, BpeOptions options, const std::string& name)
    : Model(std::move(tokens)), options_(std::move(options)), whole_words_(vocabulary().entries().size()) {
  if (options_.unk_token) unknown_id_ = vocabulary().required_id(*options_.unk_token, "unknown token", name);
  find_bytes(name);
  const size_t size = std::bit_ceil(std::max<size_t>(16, 2 * merges.size()));
  rules_.resize(size);
  shift_ = 64 - std::countr_zero(size);
  std::string all;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::string merged = left + right;
    const auto require = [&](const std::string& token) {
      if (const auto id = vocabulary().id(token)) return *id;
      throw DataError("{}: merge rule {}, \"{} {}\": the vocabulary lacks \"{}\"", name, rank + 1, left,
                      right, token);
    };
    const int32_t left_id = require(left);
    const int32_t right_id = require(right);
    add_rule(pair_of(left_id, right_id), static_cast<uint32_t>(rank), require(merged));
    all += left + ' ' + right + '\n';
  }
  descriptions_of_merges_ = hash128_hex(all);
  find_whole_words();
}

void Bpe::find_bytes(const std::string& name) {
  byte_ids_.fill(-1);
  if (!options_.byte_level && !options_.byte_fallback) return;
  int lacking = 0;
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const std::string token = options_.byte_level ? token_of_byte(static_cast<unsigned char>(byte))
                                                  : fmt::format("<0x{:02X}>", byte);
    byte_ids_[byte] = vocabulary().id(token).value_or(-1);
    lacking += byte_ids_[byte] < 0;
  }
  if (options_.byte_level || lacking == 0) return;
  if (lacking < std::ssize(byte_ids_)) {
    throw DataError("{}: byte_fallback: the vocabulary lacks {} of the 256 tokens <0x00> to <0xFF>", name,
                    lacking);
  }
  options_.byte_fallback = false;
}

void Bpe::add_rule(uint64_t pair, uint32_t rank, int32_t merged) {
  const size_t mask = rules_.size() - 1;
  for (size_t i = pair * 0x9E3779B97F4A7C15 >> shift_;; i = (i + 1) & mask) {
    if (rules_[i].pair != pair && rules_[i].pair != Rule{}.pair) continue;
    rules_[i] = {pair, rank, merged};
    return;
  }
}

const Bpe::Rule* Bpe::rule(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = rules_.size() - 1;
  for (size_t i = pair * 0x9E3779B97F4A7C15 >> shift_;; i = (i + 1) & mask) {
    if (rules_[i].pair == pair) return &rules_[i];
    if (rules_[i].pair == Rule{}.pair) return nullptr;
  }
}

// Most words of a text are one token. Only tokens that the rules can produce count; there may be others.
void Bpe::find_whole_words() {
  std::vector<TokenPiece> pieces;
  std::vector<int32_t> ids;
  for (const auto& [token, id] : vocabulary().entries()) {
    std::optional<std::string> bytes = options_.byte_level ? bytes_of_token(token) : token;
    if (!bytes || bytes->empty()) continue;
    if (!options_.ignore_merges) {
      if (bytes->size() > 64) continue;
      pieces.clear();
      const WordRange whole{0, static_cast<uint32_t>(bytes->size())};
      tokenize(*bytes, {&whole, 1}, pieces);
      if (pieces.size() != 1 || pieces[0].id != id) continue;
    }
    whole_word_bytes_.push_back(std::move(*bytes));
    ids.push_back(id);
  }
  for (size_t i = 0; i < ids.size(); ++i) whole_words_.insert(whole_word_bytes_[i], ids[i]);
}

void Bpe::tokenize(std::string_view text, std::span<const WordRange> words,
                   std::vector<TokenPiece>& out) const {
  Workspace work;
  for (uint32_t word = 0; word < words.size(); ++word) {
    const auto [begin, end] = words[word];
    if (const int32_t id = whole_words_.find(text.substr(begin, end - begin)); id >= 0) {
      out.push_back({id, begin, end, word});
      continue;
    }
    options_.byte_level ? spell_bytes(text, word, words[word], work.symbols)
                        : spell_characters(text, word, words[word], work.symbols);
    merge(work);
    if (work.symbols.empty()) continue;
    for (uint32_t i = 0; i != no_symbol; i = work.next[i]) out.push_back(work.symbols[i]);
  }
}

void Bpe::spell_bytes(std::string_view text, uint32_t word, WordRange range,
                      std::vector<TokenPiece>& symbols) const {
  symbols.clear();
  bool after_unknown = false;
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(text[i])];
    if (id < 0 && after_unknown && options_.fuse_unk) {
      symbols.back().end = i + 1;
    } else if (id >= 0 || unknown_id_ >= 0) {
      symbols.push_back({id >= 0 ? id : unknown_id_, i, i + 1, word});
    }
    after_unknown = id < 0 && unknown_id_ >= 0;
  }
}

void Bpe::spell_characters(std::string_view text, uint32_t word, WordRange range,
                           std::vector<TokenPiece>& symbols) const {
  symbols.clear();
  bool after_unknown = false;
  for (uint32_t begin = range.begin; begin < range.end;) {
    size_t next = begin;
    next_code_point(text, next);
    const auto end = static_cast<uint32_t>(next);
    const auto id = vocabulary().id(text.substr(begin, end - begin));
    if (id) {
      symbols.push_back({*id, begin, end, word});
    } else if (options_.byte_fallback) {
      for (uint32_t i = begin; i < end; ++i)
        symbols.push_back({byte_ids_[static_cast<unsigned char>(text[i])], i, i + 1, word});
    } else if (after_unknown && options_.fuse_unk) {
      symbols.back().end = end;
    } else if (unknown_id_ >= 0) {
      symbols.push_back({unknown_id_, begin, end, word});
    }
    after_unknown = !id && !options_.byte_fallback && unknown_id_ >= 0;
    begin = end;
  }
}

void Bpe::merge(Workspace& work) const {
  auto& [symbols, next, previous, rank, queue] = work;
  const auto size = static_cast<uint32_t>(symbols.size());
  next.resize(size);
  previous.resize(size);
  rank.resize(size);
  queue.clear();
  const auto look_up = [&](uint32_t i) {
    const Rule* found = next[i] == no_symbol ? nullptr : rule(symbols[i].id, symbols[next[i]].id);
    rank[i] = found == nullptr ? no_rule : found->rank;
    if (found != nullptr) queue.push_back(static_cast<uint64_t>(found->rank) << 32 | i);
    return found != nullptr;
  };
  for (uint32_t i = 0; i < size; ++i) {
    next[i] = i + 1 < size ? i + 1 : no_symbol;
    previous[i] = i > 0 ? i - 1 : no_symbol;
    look_up(i);
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto left = static_cast<uint32_t>(queue.back());
    const auto wanted = static_cast<uint32_t>(queue.back() >> 32);
    queue.pop_back();
    if (rank[left] != wanted) continue;
    const uint32_t right = next[left];
    symbols[left].id = rule(symbols[left].id, symbols[right].id)->merged;
    symbols[left].end = symbols[right].end;
    next[left] = next[right];
    rank[right] = no_rule;
    if (next[left] != no_symbol) previous[next[left]] = left;
    if (look_up(left)) std::push_heap(queue.begin(), queue.end(), std::greater<>());
    if (previous[left] != no_symbol && look_up(previous[left]))
      std::push_heap(queue.begin(), queue.end(), std::greater<>());
  }
}

bool Bpe::reads_any_bytes() const {
  return options_.byte_level && std::ranges::all_of(byte_ids_, [](int32_t id) { return id >= 0; });
}

std::string Bpe::description() const {
  const std::string kind = options_.byte_level      ? "byte-level BPE"
                           : options_.byte_fallback ? "BPE with bytes"
                                                    : "BPE";
  return fmt::format("{}\n{}\n{} {}\n{}\n", kind, options_.unk_token.value_or(""), options_.fuse_unk,
                     options_.ignore_merges, descriptions_of_merges_);
}

}  // namespace stretto::text
