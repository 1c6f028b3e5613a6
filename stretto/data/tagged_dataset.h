#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "stretto/corpus/tagged.h"
#include "stretto/data/dataset.h"
#include "stretto/data/feature_file.h"
#include "stretto/data/features/words.h"
#include "stretto/data/rows.h"
#include "stretto/data/sentence_context.h"
#include "stretto/text/tokenizer.h"

namespace stretto::data {

// The treatment of a sentence with more than max_length tokens.
enum class LongSentences {
  cut,     // words beyond max_length are dropped
  window,  // split into overlapping samples; a word is predicted in the sample with most context around it
  refuse   // DataError, which names the line
};

struct TaggedDatasetOptions {
  int64_t max_length = 128;  // tokens per sample, special tokens included
  LongSentences long_sentences = LongSentences::window;
  int64_t stride = 0;  // tokens that consecutive windows of a sentence share
  // All tokens of a word have its tag (I- after the first token of B-); otherwise only the first token has
  // one.
  bool label_all_tokens = false;
  std::string characters = {};  // the characters of models that read them (text::Characters); "": none
  bool whole_words = false;     // for models that read words of several tokens as one
  const text::Tokenizer* words = nullptr;  // gives the ids of words to read; null: none
  ContextOptions context = {};             // context of sentences that need no windows
  std::filesystem::path cache = {};
  int64_t pad_to_multiple_of = 1;
  OptionNames names = {};
};

// The sentences of a tagged corpus as token ids with labels, ready to be packed. A sample is a sentence or a
// window of one.
class TaggedDataset : public Dataset {
 public:
  // Tokenises `corpus`, or maps the file in options.cache that an earlier run wrote. `tags`: the classes;
  // every tag of the corpus must be among them. Throws ConfigError if max_length leaves no room for words;
  // DataError, with the line, for unknown tags and for long sentences with LongSentences::refuse, and for a
  // cached file of other texts.
  TaggedDataset(const corpus::TaggedCorpus& corpus, const LabelSet& tags, const text::Tokenizer& tokenizer,
                const TaggedDatasetOptions& options);

  int64_t size() const override { return features_.size(); }
  int32_t length_of(int64_t sample) const override { return static_cast<int32_t>(ids(sample).size()); }
  std::string fingerprint() const override { return fingerprint_; }

  // Packs samples with pack_words(), with the features of the options. If the corpus has tags, the batch has
  // labels [T]: tag ids, and -100 for tokens of words that are not predicted and, without label_all_tokens,
  // for all but the first token of a word.
  Batch pack(std::span<const int64_t> samples) const override;

  // Like pack(), without the context of each sample for which `without`, by the order of `samples`, is true.
  // REQUIRES: options.context.marked.
  Batch pack_without_context(std::span<const int64_t> samples, const std::vector<bool>& without) const;

  bool has_tags() const { return has_tags_; }
  std::span<const int32_t> words() const { return words_; }  // the number of words to predict in each sample
  int64_t unpredicted_words() const { return cut_; }  // words beyond max_length, with LongSentences::cut
  int64_t windows() const { return windows_; }        // samples that are not a whole sentence

  // The gold tag ids of each sentence of the corpus by word; -1 without tags.
  const std::vector<std::vector<int32_t>>& gold() const { return gold_; }

  // Collects the predictions of some samples: `rows` has a row of tag ids per sample of `samples`, indexed by
  // pack's word numbers.
  struct Tags {
    std::vector<std::vector<int32_t>>
        ids;                  // per sentence of the corpus, by word; -1 for words that no sample predicts
    std::vector<bool> whole;  // whether the samples include all samples of the sentence
  };
  Tags by_sentence(std::span<const int64_t> samples, std::span<const std::vector<int32_t>> rows) const;

 private:
  std::span<const int32_t> ids(int64_t sample) const { return features_.row(sample, 0); }
  // The word of each token if it is to be predicted in this sample, else -1, or context_word.
  std::span<const int32_t> word_ids(int64_t sample) const { return features_.row(sample, 1); }
  bool fits_tokens(int64_t sample) const;
  WordSample row_of(int64_t sample) const;
  Batch pack_rows(std::span<const WordSample> rows) const;
  Tensor labels(std::span<const WordSample> rows, int64_t tokens) const;
  int32_t sentence(int64_t sample) const { return features_.row(sample, 2)[0]; }

  FeatureFile features_;
  std::vector<int32_t> words_, inside_;  // inside_: the tag of the later tokens of a word, by its tag
  std::vector<std::vector<int32_t>> gold_;
  WordColumns columns_;
  bool has_tags_, label_all_tokens_, has_word_ids_;
  int64_t pad_to_multiple_of_, cut_ = 0, windows_ = 0;
  std::string fingerprint_;
};

}  // namespace stretto::data
