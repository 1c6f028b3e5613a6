#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/corpus/squad.h"
#include "stretto/data/features/answers.h"
#include "stretto/data/question_dataset.h"

namespace stretto::tasks {

// The model's results for one sample (a question with a window of its context).
struct WindowScores {
  // The scores of token 0, whose sum is the score that the window has no answer.
  double null_start = std::numeric_limits<double>::infinity(), null_end = 0;
  std::vector<data::ScoredToken> starts, ends;  // the n_best_size best ones, best first
};

struct AnswerOptions {
  bool null_answers = false;  // version_2_with_negative
  int64_t n_best_size = 20;
  int64_t max_answer_length = 30;  // tokens
  double null_score_diff_threshold = 0;
};

// The score of an answer is the sum of those of its start and end.
struct CandidateAnswer : data::Answer {
  double probability = 0;  // among the candidates of its question
};

struct QuestionAnswers {
  std::string answer;                   // the prediction; "" for none
  std::vector<CandidateAnswer> n_best;  // best first; at least one
  std::optional<double> null_odds;      // with null_answers: score of no answer minus that of the best answer
};

// Combines the windows of each question, like postprocess_qa_predictions of Hugging Face's run_qa: pairs of
// the best starts and ends inside the context, in order and not too long; the n_best_size best pairs of all
// windows; and "no answer" with the smallest null score of its windows. `windows`: one per sample of
// `dataset`. Returns the answers in the order of the questions.
std::vector<QuestionAnswers> answer_questions(const corpus::QuestionSet& questions,
                                              const data::QuestionDataset& dataset,
                                              std::span<const WindowScores> windows,
                                              const AnswerOptions& options);

}  // namespace stretto::tasks
