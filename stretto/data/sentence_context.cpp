#include "stretto/data/sentence_context.h"

#include <deque>
#include <limits>

#include "stretto/base/error.h"

namespace stretto::data {
namespace {

struct Word {
  const std::string* text;
  size_t tokens;
};

// Words in the order of their distance from the sentence, nearest first.
struct ContextSide {
  std::deque<Word> words;
  size_t tokens = 0;

  void drop_farthest() {
    tokens -= words.back().tokens;
    words.pop_back();
  }
};

// `step`: -1 for the sentences before, 1 for those after.
ContextSide side_of(const corpus::TaggedCorpus& corpus, int64_t index, int64_t step,
                    const ContextOptions& options, const text::Tokenizer& tokenizer) {
  ContextSide side;
  const int64_t document = corpus.sentences[static_cast<size_t>(index)].document;
  for (int64_t i = index + step; i >= 0 && i < std::ssize(corpus.sentences); i += step) {
    const corpus::TaggedSentence& sentence = corpus.sentences[static_cast<size_t>(i)];
    if (options.within_document && sentence.document != document) break;
    for (size_t k = 0; k < sentence.tokens.size(); ++k) {
      if (std::ssize(side.words) == options.words) return side;
      const std::string& text = sentence.tokens[step > 0 ? k : sentence.tokens.size() - 1 - k];
      const size_t tokens =
          tokenizer.encode(std::vector<std::string>{text}, {.special_tokens = false}).size();
      side.words.push_back({&text, tokens});
      side.tokens += tokens;
    }
  }
  return side;
}

// Inserts a token of no word at a position.
void insert(text::Encoding& encoding, size_t position, int32_t id) {
  const auto at = [&](auto& column) { return column.begin() + static_cast<std::ptrdiff_t>(position); };
  encoding.ids.insert(at(encoding.ids), id);
  encoding.type_ids.insert(at(encoding.type_ids), 0);
  encoding.offsets.insert(at(encoding.offsets), text::Offset{});
  encoding.word_ids.insert(at(encoding.word_ids), -1);
  encoding.sequence_ids.insert(at(encoding.sequence_ids), int8_t{-1});
  encoding.special_tokens_mask.insert(at(encoding.special_tokens_mask), uint8_t{1});
}

// Surrounds the words [begin, end).
void surround_words(text::Encoding& encoding, int32_t begin, int32_t end, int32_t separator,
                    const text::Tokenizer& tokenizer) {
  const auto [before, after] = tokenizer.template_ids();
  size_t first = before.size(), last = encoding.size() - after.size();
  while (first < last && encoding.word_ids[first] < begin) ++first;
  while (last > first && encoding.word_ids[last - 1] >= end) --last;
  insert(encoding, last, separator);
  insert(encoding, first, separator);
}

}  // namespace

std::optional<int32_t> separator_id(const std::string& separator, const text::Tokenizer& tokenizer) {
  if (separator.empty()) return std::nullopt;
  if (const auto id = tokenizer.id(separator)) return id;
  throw DataError(
      "the tokenizer has no token {}, which the model reads around each sentence; use the tokenizer in the model's folder",
      separator);
}

void surround(text::Encoding& encoding, int32_t separator, const text::Tokenizer& tokenizer) {
  surround_words(encoding, 0, std::numeric_limits<int32_t>::max(), separator, tokenizer);
}

std::optional<text::Encoding> encode_in_context(const corpus::TaggedCorpus& corpus, int64_t index,
                                                const ContextOptions& options,
                                                const text::Tokenizer& tokenizer, size_t max_length) {
  const std::vector<std::string>& own = corpus.sentences[static_cast<size_t>(index)].tokens;
  const size_t separators = options.separator ? 2 : 0;
  const size_t own_tokens = tokenizer.encode(own, {.special_tokens = true}).size() + separators;
  if (own_tokens > max_length) return std::nullopt;
  ContextSide before = side_of(corpus, index, -1, options, tokenizer),
              behind = side_of(corpus, index, 1, options, tokenizer);
  while (before.tokens + behind.tokens > max_length - own_tokens)
    (before.tokens > behind.tokens ? before : behind).drop_farthest();
  std::vector<std::string> words;
  for (auto word = before.words.rbegin(); word != before.words.rend(); ++word) words.push_back(*word->text);
  words.insert(words.end(), own.begin(), own.end());
  for (const Word& word : behind.words) words.push_back(*word.text);
  text::Encoding encoding =
      tokenizer.encode(words, {.special_tokens = true, .max_length = max_length - separators});
  const auto begin = static_cast<int32_t>(before.words.size());
  if (options.separator) {
    surround_words(encoding, begin, begin + static_cast<int32_t>(own.size()), *options.separator, tokenizer);
  }
  const int32_t of_context = options.marked ? context_word : -1;
  for (int32_t& word : encoding.word_ids) {
    if (word < 0) continue;
    word = word < begin || word >= begin + std::ssize(own) ? of_context : word - begin;
  }
  return encoding;
}

}  // namespace stretto::data
