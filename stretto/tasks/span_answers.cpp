#include "stretto/tasks/span_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stretto::tasks {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

CandidateAnswer candidate(double start, double end) {
  return {{.start_score = start, .end_score = end, .score = start + end}};
}

void add_candidates(const data::QuestionDataset& dataset, int64_t sample, const WindowScores& window,
                    const AnswerOptions& options, std::vector<CandidateAnswer>& candidates) {
  const data::AnswerLimits limits = {dataset.begin_of_context(sample), dataset.end_of_context(sample),
                                     options.max_answer_length};
  for (const data::AnswerSpan& span : data::answer_spans(window.starts, window.ends, limits)) {
    CandidateAnswer& added = candidates.emplace_back(candidate(span.start_score, span.end_score));
    added.begin = dataset.offsets(sample, span.first).first;
    added.end = dataset.offsets(sample, span.last).second;
  }
}

void set_probabilities(std::vector<CandidateAnswer>& candidates) {
  double best = -infinity, sum = 0;
  for (const CandidateAnswer& one : candidates) best = std::max(best, one.score);
  for (CandidateAnswer& one : candidates) sum += one.probability = std::exp(one.score - best);
  for (CandidateAnswer& one : candidates) one.probability /= sum;
}

// `candidates`: those of all windows of a question; `null`: the candidate "no answer".
QuestionAnswers choose(std::string_view context, std::vector<CandidateAnswer> candidates,
                       const CandidateAnswer& null, const AnswerOptions& options) {
  const bool may_be_null = options.null_answers && std::isfinite(null.score);
  if (may_be_null) candidates.push_back(null);
  data::keep_best(candidates, options.n_best_size);
  const auto is_null = [](const CandidateAnswer& one) { return one.end == 0; };
  if (may_be_null && std::ranges::none_of(candidates, is_null)) candidates.push_back(null);
  data::read_texts(context, candidates);
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
  std::vector<CandidateAnswer> nulls(set.questions.size(), candidate(infinity, 0));
  for (int64_t sample = 0; sample < dataset.size(); ++sample) {
    const auto question = static_cast<size_t>(dataset.question(sample));
    const WindowScores& window = windows[static_cast<size_t>(sample)];
    const CandidateAnswer null = candidate(window.null_start, window.null_end);
    if (null.score < nulls[question].score) nulls[question] = null;
    add_candidates(dataset, sample, window, options, candidates[question]);
  }
  std::vector<QuestionAnswers> answers;
  for (size_t i = 0; i < set.questions.size(); ++i)
    answers.push_back(
        choose(set.contexts[set.questions[i].context], std::move(candidates[i]), nulls[i], options));
  return answers;
}

}  // namespace stretto::tasks
