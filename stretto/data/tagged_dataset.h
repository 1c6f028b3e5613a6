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

// What becomes of a sentence of more than max_length tokens.
enum class LongSentences {
  cut,  // the words behind max_length are left out
  window,  // it becomes several samples that overlap; each word is predicted in the one with most context around it
  refuse  // an error that names the line
};

struct TaggedDatasetOptions {
  int64_t max_length = 128;  // tokens per sample, special tokens included
  LongSentences long_sentences = LongSentences::window;
  int64_t stride = 0;  // tokens that consecutive windows of a sentence share
  bool label_all_tokens =
      false;  // all tokens of a word have its tag (I- behind the first one for B-), else the first only
  std::string characters = {};             // those of text::Characters, for models that read them; "": none
  bool whole_words = false;                // for models that read words of several tokens as one
  const text::Tokenizer* words = nullptr;  // then also their ids by this tokenizer of words; null: none
  ContextOptions context = {};             // of sentences that need no windows
  std::filesystem::path cache = {};
  int64_t pad_to_multiple_of = 1;
  OptionNames names = {};
};

// The sentences of a tagged corpus as token ids with labels, ready to be packed. A sample is a sentence or a window of one.
class TaggedDataset : public Dataset {
 public:
  // Tokenises `corpus`, or maps the file in options.cache that an earlier run wrote. `tags`: the classes; every tag of the
  // corpus must be among them. Throws ConfigError if max_length leaves no room for words; DataError, by line, for unknown
  // tags and long sentences that are refused, and for a cached file of other texts.
  TaggedDataset(const corpus::TaggedCorpus& corpus, const LabelSet& tags, const text::Tokenizer& tokenizer,
                const TaggedDatasetOptions& options);

  int64_t size() const override { return features_.size(); }
  int32_t length_of(int64_t sample) const override { return static_cast<int32_t>(ids(sample).size()); }
  std::string fingerprint() const override { return fingerprint_; }

  // The batch of pack_words(), with what the options ask for; if the corpus has tags, with labels [T]: tag ids, -100
  // for tokens of no word to predict and, without label_all_tokens, for further tokens of a word.
  Batch pack(std::span<const int64_t> samples) const override;

  bool has_tags() const { return has_tags_; }
  std::span<const int32_t> words() const { return words_; }  // to predict, of each sample
  int64_t max_words() const { return max_words_; }           // the most of them
  int64_t unpredicted_words() const { return cut_; }         // behind max_length, with LongSentences::cut
  int64_t windows() const { return windows_; }               // samples that are not a whole sentence

  // The gold tag ids of each sentence of the corpus by word; -1 without tags.
  const std::vector<std::vector<int32_t>>& gold() const { return gold_; }

  // Predictions of some samples: `rows` hold tag ids by pack's word numbers, a row per sample of `samples`.
  struct Tags {
    std::vector<std::vector<int32_t>>
        ids;  // per sentence of the corpus, by word; -1 for words that are in none of the samples
    std::vector<bool> whole;  // whether all samples of the sentence are there
  };
  Tags by_sentence(std::span<const int64_t> samples, std::span<const std::vector<int32_t>> rows) const;

 private:
  std::span<const int32_t> ids(int64_t sample) const { return features_.row(sample, 0); }
  // The word of each token if it is to be predicted in this sample, else -1.
  std::span<const int32_t> word_ids(int64_t sample) const { return features_.row(sample, 1); }
  bool fits_tokens(int64_t sample) const;
  Tensor labels(std::span<const int64_t> samples, int64_t tokens) const;
  int32_t sentence(int64_t sample) const { return features_.row(sample, 2)[0]; }

  FeatureFile features_;
  std::vector<int32_t> words_, inside_;  // inside_: the tag of further tokens of a word, by tag
  std::vector<std::vector<int32_t>> gold_;
  WordColumns columns_;
  bool has_tags_, label_all_tokens_, has_word_ids_;
  int64_t pad_to_multiple_of_, max_words_ = 0, cut_ = 0, windows_ = 0;
  std::string fingerprint_;
};

}  // namespace stretto::data
