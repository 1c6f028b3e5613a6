#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/corpus/squad.h"
#include "stretto/data/dataset.h"
#include "stretto/data/feature_file.h"
#include "stretto/text/tokenizer.h"

namespace stretto::data {

struct QuestionDatasetOptions {
  int64_t max_length = 384;  // tokens per sample: question, window of the context and special tokens
  int64_t doc_stride = 128;  // tokens of the context that consecutive windows share
  std::filesystem::path cache = {};
  int64_t pad_to_multiple_of = 1;
  bool is_scored = false;  // the fingerprint covers all answers, since predictions are compared with them
  OptionNames names = {};
};

// An answer that is not in its context at its answer_start.
struct MisplacedAnswer {
  size_t question = 0;
  std::string found;  // the text at answer_start
};

// Returns the misplaced answers among the first answers of the questions, which models are trained on.
std::vector<MisplacedAnswer> find_misplaced_answers(const corpus::QuestionSet& questions);

// Questions with windows of their contexts, ready to be packed. A sample is a question with one window: [CLS]
// question [SEP] window [SEP] for BERT.
class QuestionDataset : public Dataset {
 public:
  // Builds the samples on all processors, or maps the file in options.cache that an earlier run wrote. Throws
  // ConfigError if doc_stride leaves no room, DataError for questions that are too long, with their places,
  // and for a cached file of other questions.
  QuestionDataset(const corpus::QuestionSet& questions, const text::Tokenizer& tokenizer,
                  const QuestionDatasetOptions& options);

  int64_t size() const override { return features_.size(); }
  int32_t length_of(int64_t sample) const override {
    return static_cast<int32_t>(features_.row(sample, 0).size());
  }
  std::string fingerprint() const override { return fingerprint_; }

  // A packed batch (see Batch) with starts [B] and ends [B]: the token indices of the first answer within the
  // sample, or 0 ([CLS]) if the window does not contain it.
  Batch pack(std::span<const int64_t> samples) const override;

  int64_t question(int64_t sample) const { return features_.row(sample, place_row)[0]; }
  int64_t begin_of_context(int64_t sample) const { return features_.row(sample, place_row)[3]; }
  int64_t end_of_context(int64_t sample) const { return features_.row(sample, place_row)[4]; }

  // The code points [first, second) of the context that a token covers.
  std::pair<int64_t, int64_t> offsets(int64_t sample, int64_t token) const {
    return {features_.row(sample, 2)[static_cast<size_t>(token)],
            features_.row(sample, 3)[static_cast<size_t>(token)]};
  }

 private:
  static constexpr int64_t place_row = 4;  // {question, start, end, first and last + 1 token of the context}

  FeatureFile features_;  // rows: ids, types, begins, ends, place
  int64_t pad_to_multiple_of_;
  std::string fingerprint_;
};

}  // namespace stretto::data
