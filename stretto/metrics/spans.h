#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/corpus/tags.h"

namespace stretto::metrics {

using TagSequences = std::span<const std::vector<std::string>>;

// The counts of spans of a type. A span is correct if both its boundaries and its type are.
struct SpanCounts {
  int64_t gold = 0;
  int64_t predicted = 0;
  int64_t correct = 0;
};

struct Scores {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

// Scores of 0/0 are zero, as in seqeval.
Scores scores_of(const SpanCounts& counts);

// Compares two taggings of the same sentences span by span. All numbers are bitwise equal to seqeval 1.2's;
// Ramshaw and Marcus 1995, Tjong Kim Sang and De Meulder 2003.
class SpanScores {
 public:
  // `scheme`: only spans that are well-formed in the scheme count, as with seqeval's mode="strict";
  // nullopt: seqeval's default, which follows conlleval. Throws DataError if the sequences differ in number
  // or length, and if there are no words.
  SpanScores(TagSequences gold, TagSequences predicted, std::optional<corpus::TagScheme> scheme = {});

  const std::map<std::string, SpanCounts>& types() const { return types_; }  // the types that occur, sorted
  SpanCounts total() const;
  double accuracy() const;  // fraction of words with the gold tag
  Scores micro() const { return scores_of(total()); }
  Scores macro() const;     // means over the types
  Scores weighted() const;  // means weighted by the number of gold spans

  // {TYPE: {precision, recall, f1, number}, ..., overall_precision, overall_recall, overall_f1,
  // overall_accuracy} like Hugging Face's metric "seqeval", then "micro avg", "macro avg" and "weighted avg"
  // like seqeval's report.
  nlohmann::ordered_json to_json() const;

  // The scores of each type as lines for a terminal (class_report.h); "" if there are no spans.
  std::string table() const;

 private:
  Scores average(bool weighted) const;

  std::map<std::string, SpanCounts> types_;
  int64_t words_ = 0;
  int64_t correct_words_ = 0;
};

// The scores of conlleval (version 2004-01-26) in percent, rounded to two decimals like its output: {tokens,
// phrases, found, correct, accuracy, precision, recall, FB1, types: {TYPE: {precision, recall, FB1, found}}}.
// Its rules differ from seqeval's for the tags of schemes with E- and S-. Throws DataError like SpanScores.
nlohmann::ordered_json conlleval(TagSequences gold, TagSequences predicted);

}  // namespace stretto::metrics
