#include "stretto/data/tagged_dataset.h"

#include <algorithm>
#include <deque>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"
#include "stretto/data/features/words.h"

namespace stretto::data {
namespace {

// The rows of a sample: ids, word ids, {sentence}; with characters, their ids and their number per token;
// with a tokenizer of words, the id of the word that begins at each token, else 0.
enum Row : int64_t {
  token_ids,
  words_of_tokens,
  number_of_sentence,
  character_ids,
  character_counts,
  ids_of_words
};
int64_t rows_of_sentences(const TaggedDatasetOptions& options) {
  if (options.words != nullptr) return 6;
  return options.characters.empty() ? 3 : 5;
}

// Adds the samples of one sentence.
void encode_sentence(const corpus::TaggedCorpus& corpus, int64_t index, const text::Tokenizer& tokenizer,
                     const TaggedDatasetOptions& options, const WordInputs& inputs, FeatureRows& samples) {
  const corpus::TaggedSentence& sentence = corpus.sentences[static_cast<size_t>(index)];
  const text::EncodeOptions encode = {
      .special_tokens = true,
      .max_length = static_cast<size_t>(options.max_length),
      .stride = options.long_sentences == LongSentences::window ? static_cast<size_t>(options.stride) : 0};
  std::vector<text::Encoding> windows;
  if (options.context.words > 0 || options.context.separator) {
    auto whole = encode_in_context(corpus, index, options.context, tokenizer, *encode.max_length);
    if (whole) windows.push_back(std::move(*whole));
  }
  if (!windows.empty()) {
    // the sentence fits with its context
  } else if (options.long_sentences == LongSentences::cut) {
    windows.push_back(
        tokenizer.encode(sentence.tokens, {.special_tokens = true, .max_length = encode.max_length}));
  } else {
    windows = tokenizer.encode_windows(sentence.tokens, encode);
  }
  if (windows.size() > 1 && options.long_sentences == LongSentences::refuse) {
    const size_t tokens = tokenizer.encode(sentence.tokens).size();
    throw DataError(
        "{}:{}: the sentence has {} tokens, more than {}: {}; raise it, or set {} to window or cut",
        corpus.name, sentence.line, tokens, options.names("max_length"), options.max_length,
        options.names("long_sentences"));
  }
  for (text::Encoding& window : windows) {
    if (window.size() > 0) continue;
    window.ids = {0};  // packed sequences must not be empty: one token of no word
    window.word_ids = {-1};
    window.offsets = {{0, 0}};
  }
  const auto features = word_features(windows, sentence.tokens, encode.stride, inputs);
  const int32_t number[] = {static_cast<int32_t>(index)};
  for (size_t k = 0; k < windows.size(); ++k) {
    const auto& ids = windows[k].ids;
    const auto& [words, characters, counts, of_words] = features[k];
    if (inputs.words != nullptr) {
      samples.add({ids, words, number, characters, counts, of_words});
    } else if (!inputs.characters.empty()) {
      samples.add({ids, words, number, characters, counts});
    } else {
      samples.add({ids, words, number});
    }
  }
}

FeatureFile cached_features(const corpus::TaggedCorpus& corpus, const text::Tokenizer& tokenizer,
                            const TaggedDatasetOptions& options) {
  std::vector<uint64_t> parts = {hash64(tokenizer.fingerprint()), static_cast<uint64_t>(options.max_length),
                                 static_cast<uint64_t>(options.long_sentences),
                                 static_cast<uint64_t>(options.stride)};
  if (!options.characters.empty()) parts.push_back(hash64(options.characters));
  if (options.whole_words)
    parts.push_back(hash64(options.words != nullptr ? options.words->fingerprint() : "whole words"));
  if (options.context.words > 0) {
    parts.push_back(hash64("context"));
    parts.push_back(static_cast<uint64_t>(options.context.words));
    parts.push_back(static_cast<uint64_t>(options.context.within_document));
    if (options.context.marked) parts.push_back(hash64("marked"));
  }
  if (options.context.separator) {
    parts.push_back(hash64("separator"));
    parts.push_back(static_cast<uint64_t>(*options.context.separator));
  }
  for (const auto& sentence : corpus.sentences) {
    if (options.context.words > 0) parts.push_back(static_cast<uint64_t>(sentence.document));
    parts.push_back(sentence.tokens.size());
    for (const std::string& token : sentence.tokens) parts.push_back(hash64(token));
  }
  const std::string key =
      hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
  const WordInputs inputs = {text::Characters(options.characters), options.whole_words, options.words};
  return FeatureFile::cached(options.cache / (key + ".words"), rows_of_sentences(options),
                             std::ssize(corpus.sentences), {corpus.name, "sentences"},
                             [&](int64_t index, FeatureRows& samples) {
                               encode_sentence(corpus, index, tokenizer, options, inputs, samples);
                             });
}

void require_room(const text::Tokenizer& tokenizer, const TaggedDatasetOptions& options) {
  const auto special = std::ssize(tokenizer.encode("").ids);
  if (options.max_length <= special)
    throw ConfigError(
        "{} is {}, of which {} are special tokens: no room is left for words; typical values are 64 to 512",
        options.names("max_length"), options.max_length, special);
  if (options.long_sentences != LongSentences::window || options.stride < options.max_length - special)
    return;
  throw ConfigError("{} is {}, but windows of {}: {} have room for {} tokens; expected a smaller stride",
                    options.names("stride"), options.stride, options.names("max_length"), options.max_length,
                    options.max_length - special);
}

}  // namespace

TaggedDataset::TaggedDataset(const corpus::TaggedCorpus& corpus, const LabelSet& tags,
                             const text::Tokenizer& tokenizer, const TaggedDatasetOptions& options)
    : features_((require_room(tokenizer, options), cached_features(corpus, tokenizer, options))),
      columns_{!options.characters.empty(), options.whole_words},
      has_tags_(corpus.has_tags),
      label_all_tokens_(options.label_all_tokens),
      has_word_ids_(options.words != nullptr),
      pad_to_multiple_of_(options.pad_to_multiple_of) {
  for (const std::string& name : tags.names()) {
    const auto inside = name.starts_with("B-") ? tags.id("I-" + name.substr(2)) : std::nullopt;
    inside_.push_back(static_cast<int32_t>(inside.value_or(static_cast<int64_t>(inside_.size()))));
  }
  for (const corpus::TaggedSentence& sentence : corpus.sentences) {
    auto& ids = gold_.emplace_back(sentence.tokens.size(), -1);
    for (size_t i = 0; i < sentence.tags.size(); ++i) {
      const auto id = tags.id(sentence.tags[i]);
      if (!id)
        throw DataError("{}:{}: the tag \"{}\" is not one of {}{}", corpus.name, sentence.line,
                        sentence.tags[i], fmt::join(tags.names(), ", "),
                        did_you_mean(sentence.tags[i], tags.names()));
      ids[i] = static_cast<int32_t>(*id);
    }
  }
  const auto foreign = [&](const char* what) -> DataError {
    return DataError(
        "{}: the cached tokens of {} are not those of its sentences ({}); delete the folder, the next run writes it again",
        options.cache.string(), corpus.name, what);
  };
  std::vector<std::vector<int32_t>> counts;
  std::vector<int32_t> samples_of(gold_.size());
  for (int64_t sample = 0; sample < size(); ++sample) {
    if (ids(sample).size() != word_ids(sample).size() || features_.row(sample, 2).size() != 1)
      throw foreign("rows");
    if (columns_.characters && !fits_tokens(sample)) throw foreign("characters");
    if (has_word_ids_) {
      const auto of_words = features_.row(sample, ids_of_words);
      if (of_words.size() != ids(sample).size()) throw foreign("ids of words");
      for (const int32_t id : of_words)
        if (id < 0 || id >= options.words->vocab_size()) throw foreign("ids of words");
    }
    if (sentence(sample) < 0 || sentence(sample) >= std::ssize(gold_)) throw foreign("sentences");
    for (const int32_t id : ids(sample))
      if (id < 0 || id >= tokenizer.vocab_size()) throw foreign("ids");
    const auto words = std::ssize(gold_[static_cast<size_t>(sentence(sample))]);
    int64_t predicted = 0;
    int32_t previous = -1;
    for (const int32_t word : word_ids(sample)) {
      if (word < context_word || word >= words) throw foreign("words");
      if (word >= 0 && word != previous) ++predicted;
      previous = word;
    }
    words_.push_back(static_cast<int32_t>(predicted));
    ++samples_of[static_cast<size_t>(sentence(sample))];
  }
  for (const int32_t samples : samples_of) windows_ += samples > 1 ? samples : 0;
  if (options.long_sentences == LongSentences::cut) {
    for (int64_t sample = 0; sample < size(); ++sample) {
      if (length_of(sample) < options.max_length) continue;
      const auto words = word_ids(sample);
      cut_ += std::ssize(gold_[static_cast<size_t>(sentence(sample))]) - 1 - *std::ranges::max_element(words);
    }
  }
  std::vector<uint64_t> parts = {features_.checksum(), hash64(tokenizer.fingerprint()), label_all_tokens_};
  for (const auto& ids : gold_)
    parts.push_back(hash64({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)}));
  for (const std::string& name : tags.names()) parts.push_back(hash64(name));
  fingerprint_ = hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

// Whether there is a count of characters for each token, and the counts sum to the number of characters.
bool TaggedDataset::fits_tokens(int64_t sample) const {
  const auto counts = features_.row(sample, character_counts);
  int64_t total = 0;
  for (const int32_t count : counts) total += count < 0 ? int64_t{1} << 40 : count;
  return counts.size() == ids(sample).size() && total == std::ssize(features_.row(sample, character_ids));
}

WordSample TaggedDataset::row_of(int64_t sample) const {
  WordSample row = {.ids = ids(sample), .words = word_ids(sample), .sample = sample};
  if (columns_.characters) row.characters = features_.row(sample, character_ids);
  if (columns_.characters) row.character_counts = features_.row(sample, character_counts);
  if (has_word_ids_) row.word_ids = features_.row(sample, ids_of_words);
  return row;
}

Batch TaggedDataset::pack(std::span<const int64_t> samples) const {
  std::vector<WordSample> rows;
  for (const int64_t sample : samples) rows.push_back(row_of(sample));
  return pack_rows(rows);
}

// Tokens of context have no characters.
Batch TaggedDataset::pack_without_context(std::span<const int64_t> samples,
                                          const std::vector<bool>& without) const {
  std::vector<WordSample> rows;
  std::deque<std::vector<int32_t>> kept;
  const auto keep_own = [&](std::span<const int32_t>& values, std::span<const int32_t> words) {
    if (values.empty()) return;
    std::vector<int32_t>& own = kept.emplace_back();
    for (size_t t = 0; t < words.size(); ++t)
      if (words[t] != context_word) own.push_back(values[t]);
    values = own;
  };
  for (size_t i = 0; i < samples.size(); ++i) {
    WordSample& row = rows.emplace_back(row_of(samples[i]));
    if (!without[i]) continue;
    const auto words = row.words;
    for (auto* values : {&row.ids, &row.words, &row.character_counts, &row.word_ids})
      keep_own(*values, words);
  }
  return pack_rows(rows);
}

Batch TaggedDataset::pack_rows(std::span<const WordSample> rows) const {
  Batch batch = pack_words(rows, columns_, pad_to_multiple_of_);
  if (has_tags_ && !rows.empty()) batch.tensors["labels"] = labels(rows, batch.at("words").numel());
  return batch;
}

// [tokens] int64: the labels of the samples' tokens, then -100 for padding.
Tensor TaggedDataset::labels(std::span<const WordSample> rows, int64_t tokens) const {
  const Tensor labels = at::full({tokens}, -100, at::kLong);
  int64_t at = 0;
  for (const WordSample& row : rows) {
    const auto& gold = gold_[static_cast<size_t>(sentence(row.sample))];
    int32_t previous = -1;
    for (const int32_t word : row.words) {
      const bool first = word != previous;
      if (word >= 0 && (first || label_all_tokens_)) {
        const int32_t tag = gold[static_cast<size_t>(word)];
        labels.data_ptr<int64_t>()[at] = first ? tag : inside_[static_cast<size_t>(tag)];
      }
      previous = word;
      ++at;
    }
  }
  return labels;
}

TaggedDataset::Tags TaggedDataset::by_sentence(std::span<const int64_t> samples,
                                               std::span<const std::vector<int32_t>> rows) const {
  Tags tags;
  for (const auto& gold : gold_) tags.ids.emplace_back(gold.size(), -1);
  tags.whole.assign(gold_.size(), true);
  std::vector<bool> seen(static_cast<size_t>(size()));
  for (size_t i = 0; i < samples.size(); ++i) {
    seen[static_cast<size_t>(samples[i])] = true;
    auto& words = tags.ids[static_cast<size_t>(sentence(samples[i]))];
    size_t number = 0;
    int32_t previous = -1;
    for (const int32_t word : word_ids(samples[i])) {
      if (word >= 0 && word != previous) words[static_cast<size_t>(word)] = rows[i].at(number++);
      previous = word;
    }
  }
  for (int64_t sample = 0; sample < size(); ++sample)
    if (!seen[static_cast<size_t>(sample)]) tags.whole[static_cast<size_t>(sentence(sample))] = false;
  return tags;
}

}  // namespace stretto::data
