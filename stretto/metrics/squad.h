#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/corpus/squad.h"

namespace stretto::metrics {

// Normalises an answer for comparison like SQuAD's scripts: lower case, without ASCII punctuation, the
// articles a, an and the, and surplus white space. Invalid UTF-8 becomes U+FFFD.
std::string normalize_answer(std::string_view text);

struct AnswerScore {
  double exact = 0;
  double f1 = 0;  // F1 of the words as multisets
};

// The best score of `predicted` over the gold answers. If no gold answer is nonempty after normalisation, the
// right answer is "" (SQuAD 2.0).
AnswerScore answer_score(const corpus::Question& question, std::string_view predicted);

using Predictions = std::map<std::string, std::string>;  // question id -> answer, "" for none
// The probability of no answer by question id, in the order of the file.
using NullOdds = std::vector<std::pair<std::string, double>>;

// The scores of SQuAD 2.0's evaluate-v2.0.py, with its names and order: exact, f1, total, HasAns_*, NoAns_*
// and, with `na_probs`, best_exact, best_exact_thresh, best_f1, best_f1_thresh. Answers whose na_prob exceeds
// `na_prob_threshold` count as "". Sums are computed from left to right in file order, as in Python up to
// 3.11. Rajpurkar et al. 2018. Throws DataError if questions lack a prediction or na_prob, or ids occur
// twice.
nlohmann::ordered_json squad_v2(const corpus::QuestionSet& questions, const Predictions& predictions,
                                const NullOdds* na_probs = nullptr, double na_prob_threshold = 1.0);

// The scores of SQuAD 1.1's evaluate-v1.1.py: exact_match and f1. Questions without a prediction count as
// wrong. Rajpurkar et al. 2016. Throws DataError if questions have no gold answer, or ids occur twice.
nlohmann::ordered_json squad_v1(const corpus::QuestionSet& questions, const Predictions& predictions);

}  // namespace stretto::metrics
