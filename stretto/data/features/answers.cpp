#include "stretto/data/features/answers.h"

namespace stretto::data {

std::vector<AnswerSpan> answer_spans(std::span<const ScoredToken> starts, std::span<const ScoredToken> ends,
                                     const AnswerLimits& limits) {
  const auto in_context = [&](int64_t token) { return token >= limits.begin && token < limits.end; };
  std::vector<AnswerSpan> spans;
  for (const ScoredToken& start : starts) {
    if (!in_context(start.token)) continue;
    for (const ScoredToken& end : ends) {
      if (!in_context(end.token) || end.token < start.token) continue;
      if (end.token - start.token + 1 > limits.longest) continue;
      spans.push_back({start.token, end.token, start.score, end.score});
    }
  }
  return spans;
}

}  // namespace stretto::data
