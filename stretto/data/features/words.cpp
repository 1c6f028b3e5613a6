#include "stretto/data/features/words.h"

#include <algorithm>

#include "stretto/data/packing.h"

namespace stretto::data {
namespace {

int32_t id_of_word(const text::Tokenizer& words, const std::string& word) {
  const auto ids = words.encode(std::vector<std::string>{word}).ids;
  return ids.empty() ? 0 : ids.front();
}

// The index of the window in which each word is predicted. Consecutive windows share `stride` tokens, so a
// window may begin in the middle of a word.
std::vector<size_t> owners(std::span<const text::Encoding> windows, size_t words, size_t stride) {
  std::vector<size_t> owner(words, windows.size());
  std::vector<int64_t> best(words, -1), first_token(words, -1);
  int64_t begin = 0;  // the window's first token in the text
  for (size_t k = 0; k < windows.size(); ++k) {
    int64_t token = begin, tokens = 0;
    for (const int32_t word : windows[k].word_ids) tokens += word >= 0;
    for (const int32_t id : windows[k].word_ids) {
      if (id < 0) continue;
      const auto word = static_cast<size_t>(id);
      if (first_token[word] < 0) first_token[word] = token;
      const int64_t context = std::min(token - begin, begin + tokens - 1 - token);
      if (first_token[word] == token && context > best[word]) {
        best[word] = context;
        owner[word] = k;
      }
      ++token;
    }
    begin += tokens - static_cast<int64_t>(stride);
  }
  return owner;
}

// Adds the characters of each token and the ids of words.
void add_spelling(const text::Encoding& window, std::span<const std::string> words, const WordInputs& inputs,
                  WordFeatures& features) {
  for (size_t t = 0; t < window.size(); ++t) {
    const size_t before = features.characters.size();
    const bool begins = begins_word(features.words, t);
    const int32_t word = window.word_ids[t];
    if (word >= 0 && !inputs.characters.empty()) {
      const std::string& text = words[static_cast<size_t>(word)];
      const auto [begin, end] = window.offsets[t];
      if (!inputs.whole_words)
        inputs.characters.append_ids(text::slice_code_points(text, begin, end), features.characters);
      else if (begins)
        inputs.characters.append_ids(text, features.characters);
    }
    features.character_counts.push_back(static_cast<int32_t>(features.characters.size() - before));
    features.word_ids.push_back(
        begins && inputs.words != nullptr ? id_of_word(*inputs.words, words[static_cast<size_t>(word)]) : 0);
  }
}

void add_words(std::span<const WordSample> samples, Batch& batch) {
  const Tensor words = at::full({batch.at("input_ids").numel()}, -1, at::kLong);
  int64_t row = 0;
  for (const WordSample& sample : samples) {
    int64_t number = 0;
    for (size_t t = 0; t < sample.words.size(); ++t, ++row)
      if (begins_word(sample.words, t)) words.data_ptr<int64_t>()[row] = number++;
  }
  batch.tensors["words"] = words;
}

void add_characters(std::span<const WordSample> samples, Batch& batch) {
  std::vector<int64_t> characters, bounds = {0};
  for (const WordSample& sample : samples) {
    characters.insert(characters.end(), sample.characters.begin(), sample.characters.end());
    for (const int32_t count : sample.character_counts) bounds.push_back(bounds.back() + count);
  }
  bounds.resize(static_cast<size_t>(batch.at("input_ids").numel()) + 1, bounds.back());
  batch.tensors["characters"] = at::tensor(characters, at::kLong);
  batch.tensors["character_cu_seqlens"] = at::tensor(bounds, at::kLong);
}

void add_whole_words(std::span<const WordSample> samples, Batch& batch) {
  std::vector<int64_t> words, ids;
  int64_t count = 0;
  for (const WordSample& sample : samples) {
    for (size_t t = 0; t < sample.words.size(); ++t) {
      const bool begins = begins_word(sample.words, t);
      count += begins;
      words.push_back(sample.words[t] >= 0 ? count - 1 : -1);
      ids.push_back(begins && !sample.word_ids.empty() ? sample.word_ids[t] : 0);
    }
  }
  const auto tokens = static_cast<size_t>(batch.at("input_ids").numel());
  words.resize(tokens, -1);
  ids.resize(tokens, 0);
  batch.tensors["token_words"] = at::tensor(words, at::kLong);
  batch.tensors["word_ids"] = at::tensor(ids, at::kLong);
}

}  // namespace

bool begins_word(std::span<const int32_t> words, size_t t) {
  return words[t] >= 0 && (t == 0 || words[t - 1] != words[t]);
}

std::vector<WordFeatures> word_features(std::span<const text::Encoding> windows,
                                        std::span<const std::string> words, size_t stride,
                                        const WordInputs& inputs) {
  const auto owner = owners(windows, words.size(), stride);
  std::vector<WordFeatures> all;
  for (size_t k = 0; k < windows.size(); ++k) {
    WordFeatures& features = all.emplace_back();
    features.words = windows[k].word_ids;
    for (int32_t& word : features.words)
      if (word >= 0 && owner[static_cast<size_t>(word)] != k) word = -1;
    if (!inputs.characters.empty() || inputs.words != nullptr)
      add_spelling(windows[k], words, inputs, features);
  }
  return all;
}

Batch pack_words(std::span<const WordSample> samples, const WordColumns& columns, int64_t multiple_of) {
  size_t longest = 0;
  for (const WordSample& sample : samples) longest = std::max(longest, sample.ids.size());
  const std::vector<int32_t> types(longest);
  std::vector<TokenSequence> sequences;
  for (const WordSample& sample : samples)
    sequences.push_back({sample.ids, std::span(types).first(sample.ids.size()), sample.sample});
  Batch batch = pack_sequences(sequences, multiple_of);
  if (samples.empty()) return batch;
  add_words(samples, batch);
  if (columns.characters) add_characters(samples, batch);
  if (columns.whole_words) add_whole_words(samples, batch);
  return batch;
}

}  // namespace stretto::data
