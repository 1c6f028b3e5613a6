#include "stretto/tasks/span_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/data/features/questions.h"

namespace stretto {
namespace {

struct Null {
  double score = std::numeric_limits<double>::infinity();
  double start = 0, end = 0;
};

void add_candidates(const data::QuestionDataset& dataset, int64_t sample, const WindowScores& window,
                    const AnswerOptions& options, std::vector<CandidateAnswer>& candidates) {
  const int64_t first = dataset.begin_of_context(sample), last = dataset.end_of_context(sample);
  const auto in_context = [&](int64_t token) { return token >= first && token < last; };
  for (const ScoredToken& start : window.starts) {
    for (const ScoredToken& end : window.ends) {
      if (!in_context(start.token) || !in_context(end.token) || end.token < start.token) continue;
      if (end.token - start.token + 1 > options.max_answer_length) continue;
      candidates.push_back({.text = {},
                            .begin = dataset.offsets(sample, start.token).first,
                            .end = dataset.offsets(sample, end.token).second,
                            .start_score = start.score,
                            .end_score = end.score});
    }
  }
}

void set_probabilities(std::vector<CandidateAnswer>& candidates) {
  double best = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const CandidateAnswer& candidate : candidates) best = std::max(best, candidate.score());
  for (CandidateAnswer& candidate : candidates)
    sum += candidate.probability = std::exp(candidate.score() - best);
  for (CandidateAnswer& candidate : candidates) candidate.probability /= sum;
}

// `candidates` of all windows of a question.
QuestionAnswers choose(std::string_view context, std::vector<CandidateAnswer> candidates, const Null& null,
                       const AnswerOptions& options) {
  const CandidateAnswer no_answer = {.text = {}, .start_score = null.start, .end_score = null.end};
  const bool may_be_null = options.null_answers && std::isfinite(null.score);
  if (may_be_null) candidates.push_back(no_answer);
  std::ranges::stable_sort(candidates, std::greater{}, &CandidateAnswer::score);
  if (std::ssize(candidates) > options.n_best_size)
    candidates.resize(static_cast<size_t>(options.n_best_size));
  const auto is_null = [](const CandidateAnswer& candidate) { return candidate.end == 0; };
  if (may_be_null && std::ranges::none_of(candidates, is_null)) candidates.push_back(no_answer);
  const data::CodePointIndex text(context);
  for (CandidateAnswer& candidate : candidates) candidate.text = text.slice(candidate.begin, candidate.end);
  if (candidates.empty()) candidates.emplace_back();  // a context without tokens
  set_probabilities(candidates);
  QuestionAnswers result;
  const auto best =
      std::ranges::find_if(candidates, [](const CandidateAnswer& one) { return !one.text.empty(); });
  if (best != candidates.end()) result.answer = best->text;
  if (options.null_answers) {
    result.null_odds = best == candidates.end() ? 0 : null.score - best->start_score - best->end_score;
    if (*result.null_odds > options.null_score_diff_threshold) result.answer.clear();
  }
  result.n_best = std::move(candidates);
  return result;
}

}  // namespace

std::vector<QuestionAnswers> answer_questions(const corpus::QuestionSet& set,
                                              const data::QuestionDataset& dataset,
                                              std::span<const WindowScores> windows,
                                              const AnswerOptions& options) {
  std::vector<std::vector<CandidateAnswer>> candidates(set.questions.size());
  std::vector<Null> nulls(set.questions.size());
  for (int64_t sample = 0; sample < dataset.size(); ++sample) {
    const auto question = static_cast<size_t>(dataset.question(sample));
    const WindowScores& window = windows[static_cast<size_t>(sample)];
    const double null_score = window.null_start + window.null_end;
    if (null_score < nulls[question].score)
      nulls[question] = {null_score, window.null_start, window.null_end};
    add_candidates(dataset, sample, window, options, candidates[question]);
  }
  std::vector<QuestionAnswers> answers;
  for (size_t i = 0; i < set.questions.size(); ++i)
    answers.push_back(
        choose(set.contexts[set.questions[i].context], std::move(candidates[i]), nulls[i], options));
  return answers;
}

}  // namespace stretto
