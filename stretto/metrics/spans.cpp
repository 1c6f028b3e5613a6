#include "stretto/metrics/spans.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/metrics/class_report.h"
#include "stretto/metrics/numpy_sum.h"
#include "stretto/metrics/ratio.h"

namespace stretto::metrics {
namespace {

std::vector<corpus::Span> spans_of(const std::vector<std::string>& tags,
                                   std::optional<corpus::TagScheme> scheme) {
  return scheme ? corpus::strict_spans(tags, *scheme) : corpus::lenient_spans(tags);
}

void require_same_lengths(TagSequences gold, TagSequences predicted) {
  if (gold.size() != predicted.size())
    throw DataError("{} gold and {} predicted sentences; expected equal numbers", gold.size(),
                    predicted.size());
  for (size_t i = 0; i < gold.size(); ++i) {
    if (gold[i].size() == predicted[i].size()) continue;
    throw DataError("sentence {}: {} gold and {} predicted tags; expected equal numbers", i + 1,
                    gold[i].size(), predicted[i].size());
  }
}

nlohmann::ordered_json report(const Scores& scores, int64_t support) {
  return {{"precision", scores.precision},
          {"recall", scores.recall},
          {"f1-score", scores.f1},
          {"support", support}};
}

}  // namespace

Scores scores_of(const SpanCounts& counts) {
  Scores scores{ratio(counts.correct, counts.predicted), ratio(counts.correct, counts.gold), 0};
  const double sum = scores.precision + scores.recall;
  if (sum != 0) scores.f1 = 2 * scores.precision * scores.recall / sum;
  return scores;
}

SpanScores::SpanScores(TagSequences gold, TagSequences predicted, std::optional<corpus::TagScheme> scheme) {
  require_same_lengths(gold, predicted);
  for (size_t i = 0; i < gold.size(); ++i) {
    const auto wanted = spans_of(gold[i], scheme), found = spans_of(predicted[i], scheme);
    for (const corpus::Span& span : wanted) ++types_[span.type].gold;
    for (const corpus::Span& span : found) {
      SpanCounts& counts = types_[span.type];
      ++counts.predicted;
      if (std::ranges::find(wanted, span) != wanted.end()) ++counts.correct;
    }
    words_ += std::ssize(gold[i]);
    for (size_t k = 0; k < gold[i].size(); ++k) correct_words_ += gold[i][k] == predicted[i][k];
  }
  if (words_ == 0) throw DataError("there are no tags to score");
}

SpanCounts SpanScores::total() const {
  SpanCounts total;
  for (const auto& [type, counts] : types_) {
    total.gold += counts.gold;
    total.predicted += counts.predicted;
    total.correct += counts.correct;
  }
  return total;
}

double SpanScores::accuracy() const { return ratio(correct_words_, words_); }

Scores SpanScores::average(bool weighted) const {
  const auto gold = static_cast<double>(total().gold);
  if (types_.empty() || (weighted && gold == 0)) return {};
  const auto mean = [&](double Scores::*score) {
    std::vector<double> values;
    for (const auto& [type, counts] : types_)
      values.push_back(scores_of(counts).*score * (weighted ? static_cast<double>(counts.gold) : 1));
    return numpy_sum(values) / (weighted ? gold : static_cast<double>(types_.size()));
  };
  return {mean(&Scores::precision), mean(&Scores::recall), mean(&Scores::f1)};
}

Scores SpanScores::macro() const { return average(false); }
Scores SpanScores::weighted() const { return average(true); }

nlohmann::ordered_json SpanScores::to_json() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [type, counts] : types_) {
    const Scores scores = scores_of(counts);
    json[type] = {{"precision", scores.precision},
                  {"recall", scores.recall},
                  {"f1", scores.f1},
                  {"number", counts.gold}};
  }
  const Scores all = micro();
  json["overall_precision"] = all.precision;
  json["overall_recall"] = all.recall;
  json["overall_f1"] = all.f1;
  json["overall_accuracy"] = accuracy();
  const int64_t gold = total().gold;
  json["micro avg"] = report(all, gold);
  json["macro avg"] = report(macro(), gold);
  json["weighted avg"] = report(weighted(), gold);
  return json;
}

std::string SpanScores::table() const {
  std::vector<ClassScores> scores;
  for (const auto& [type, counts] : types_)
    scores.push_back(class_scores(type, counts.correct, counts.predicted, counts.gold));
  return scores.empty() ? "" : class_scores_table(scores);
}

}  // namespace stretto::metrics
