#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stretto/data/features/questions.h"

// Answers as parts of a context: shared by evaluation (tasks/span_answers.h) and serving
// (serve/question_answerer.h). They score answers differently, like run_qa and the question-answering
// pipeline of transformers: run_qa adds the logits of the n best starts and ends of a window, and ranks the
// sums of all windows; the pipeline multiplies the probabilities of all tokens of a window, and merges
// answers that consist of the same words.
namespace stretto::data {

// A token with its score as the start or end of an answer.
struct ScoredToken {
  int64_t token = 0;
  double score = 0;
};

// The tokens of a window that may be an answer.
struct AnswerLimits {
  int64_t begin = 0, end = 0;  // the tokens of the context: [begin, end)
  int64_t longest = 0;         // the maximum number of tokens of an answer
};

// Tokens [first, last] of a window.
struct AnswerSpan {
  int64_t first = 0, last = 0;
  double start_score = 0, end_score = 0;
};

// Returns each pair of a start and an end within the limits, with the end not before the start, ordered by
// start, then by end, as given.
std::vector<AnswerSpan> answer_spans(std::span<const ScoredToken> starts, std::span<const ScoredToken> ends,
                                     const AnswerLimits& limits);

struct Answer {
  std::string text = {};       // "" for no answer
  int64_t begin = 0, end = 0;  // code points of the context
  double start_score = 0, end_score = 0;
  double score = 0;  // of both
};

// The `count` best answers, best first; answers of equal score keep their order. AnyAnswer: an Answer.
template <class AnyAnswer>
void keep_best(std::vector<AnyAnswer>& answers, int64_t count) {
  std::ranges::stable_sort(answers, std::greater{}, &AnyAnswer::score);
  if (std::ssize(answers) > count) answers.resize(static_cast<size_t>(count));
}

// Sets the texts of answers from their positions.
template <class AnyAnswer>
void read_texts(std::string_view context, std::vector<AnyAnswer>& answers) {
  const CodePointIndex index(context);
  for (AnyAnswer& answer : answers) answer.text = index.slice(answer.begin, answer.end);
}

}  // namespace stretto::data
