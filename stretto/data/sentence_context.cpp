#include "stretto/data/sentence_context.h"

#include <deque>

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

}  // namespace

std::optional<text::Encoding> encode_in_context(const corpus::TaggedCorpus& corpus, int64_t index,
                                                const ContextOptions& options,
                                                const text::Tokenizer& tokenizer, size_t max_length) {
  const std::vector<std::string>& own = corpus.sentences[static_cast<size_t>(index)].tokens;
  const size_t own_tokens = tokenizer.encode(own, {.special_tokens = true}).size();
  if (own_tokens > max_length) return std::nullopt;
  ContextSide before = side_of(corpus, index, -1, options, tokenizer),
              behind = side_of(corpus, index, 1, options, tokenizer);
  while (before.tokens + behind.tokens > max_length - own_tokens)
    (before.tokens > behind.tokens ? before : behind).drop_farthest();
  std::vector<std::string> words;
  for (auto word = before.words.rbegin(); word != before.words.rend(); ++word) words.push_back(*word->text);
  words.insert(words.end(), own.begin(), own.end());
  for (const Word& word : behind.words) words.push_back(*word.text);
  text::Encoding encoding = tokenizer.encode(words, {.special_tokens = true, .max_length = max_length});
  const auto begin = static_cast<int32_t>(before.words.size());
  const int32_t of_context = options.marked ? context_word : -1;
  for (int32_t& word : encoding.word_ids) {
    if (word < 0) continue;
    word = word < begin || word >= begin + std::ssize(own) ? of_context : word - begin;
  }
  return encoding;
}

}  // namespace stretto::data
