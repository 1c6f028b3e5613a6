#include "stretto/metrics/squad.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::metrics {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  const std::string normal = normalize_answer(text);
  std::vector<std::string> words;
  for (const std::string_view word : split(normal, ' '))
    if (!word.empty()) words.emplace_back(word);
  std::ranges::sort(words);
  return words;
}

double word_f1(const std::vector<std::string>& gold, const std::vector<std::string>& predicted) {
  std::vector<std::string> common;
  std::ranges::set_intersection(gold, predicted, std::back_inserter(common));
  if (common.empty()) return 0;
  const auto same = static_cast<double>(common.size());
  const double precision = same / static_cast<double>(predicted.size()),
               recall = same / static_cast<double>(gold.size());
  return (2 * precision * recall) / (precision + recall);
}

// Compares an answer with gold answers, normalising each of them once.
class Comparison {
 public:
  explicit Comparison(std::string_view predicted)
      : normal_(normalize_answer(predicted)), words_(words_of(predicted)) {}

  // `empty_equals_empty`: the rule of SQuAD 2.0 for F1 if one side has no words
  void with(std::string_view gold, bool empty_equals_empty) {
    const auto gold_words = words_of(gold);
    best_.exact = std::max<double>(best_.exact, normalize_answer(gold) == normal_);
    const bool empty = gold_words.empty() || words_.empty();
    best_.f1 = std::max(best_.f1, empty && empty_equals_empty ? static_cast<double>(gold_words == words_)
                                                              : word_f1(gold_words, words_));
  }

  const AnswerScore& best() const { return best_; }

 private:
  std::string normal_;
  std::vector<std::string> words_;
  AnswerScore best_;
};

std::string first_ids(const std::vector<std::string>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size() && i < 3; ++i) text += (i > 0 ? ", " : "") + ids[i];
  return text + (ids.size() > 3 ? ", ..." : "");
}

// The values that the official script stores in dictionaries, for each question.
struct Scored {
  bool answerable = false;
  bool predicted_text = false;
  AnswerScore raw = {};
  AnswerScore score = {};  // with answers beyond the threshold taken as ""
};

double mean_percent(const std::vector<Scored>& all, double AnswerScore::*kind,
                    std::optional<bool> answerable) {
  double sum = 0, count = 0;
  for (const Scored& one : all) {
    if (answerable && one.answerable != *answerable) continue;
    sum += one.score.*kind;
    ++count;
  }
  return 100.0 * sum / count;
}

void add_means(const std::vector<Scored>& all, const std::string& prefix, std::optional<bool> answerable,
               nlohmann::ordered_json& json) {
  const auto total = std::ranges::count_if(
      all, [&](const Scored& one) { return !answerable || one.answerable == *answerable; });
  if (total == 0) return;
  json[prefix + "exact"] = mean_percent(all, &AnswerScore::exact, answerable);
  json[prefix + "f1"] = mean_percent(all, &AnswerScore::f1, answerable);
  json[prefix + "total"] = total;
}

// Lowers the threshold over all answers by their na_prob; each given answer adds its score, and each answer
// to an unanswerable question subtracts 1.
std::pair<double, double> best_threshold(const std::vector<Scored>& all, double AnswerScore::*kind,
                                         const std::vector<std::pair<size_t, double>>& by_prob) {
  auto score = static_cast<double>(std::ranges::count(all, false, &Scored::answerable));
  double best = score, threshold = 0;
  for (const auto& [index, prob] : by_prob) {
    const Scored& one = all[index];
    score += one.answerable ? one.raw.*kind : one.predicted_text ? -1 : 0;
    if (score > best) {
      best = score;
      threshold = prob;
    }
  }
  return {100.0 * best / static_cast<double>(all.size()), threshold};
}

}  // namespace

AnswerScore answer_score(const corpus::Question& question, std::string_view predicted) {
  Comparison comparison(predicted);
  bool any = false;
  for (const corpus::Answer& answer : question.answers) {
    if (normalize_answer(answer.text).empty()) continue;
    comparison.with(answer.text, true);
    any = true;
  }
  if (!any) comparison.with("", true);
  return comparison.best();
}

nlohmann::ordered_json squad_v2(const corpus::QuestionSet& set, const Predictions& predictions,
                                const NullOdds* na_probs, double na_prob_threshold) {
  set.require_distinct_ids();
  std::map<std::string, double> prob_of;
  if (na_probs != nullptr) prob_of.insert(na_probs->begin(), na_probs->end());
  std::map<std::string_view, size_t> index_of;
  std::vector<Scored> all;
  std::vector<std::string> unanswered, without_prob;
  for (const corpus::Question& question : set.questions) {
    const auto predicted = predictions.find(question.id);
    if (predicted == predictions.end()) {
      unanswered.push_back(question.id);
      continue;
    }
    Scored one{.answerable = !question.answers.empty(), .predicted_text = !predicted->second.empty()};
    one.score = one.raw = answer_score(question, predicted->second);
    if (na_probs != nullptr) {
      const auto prob = prob_of.find(question.id);
      if (prob == prob_of.end()) {
        without_prob.push_back(question.id);
      } else if (prob->second > na_prob_threshold) {
        one.score.exact = one.score.f1 = one.answerable ? 0 : 1;
      }
    }
    index_of[question.id] = all.size();
    all.push_back(one);
  }
  if (!unanswered.empty()) {
    throw DataError(
        "{}: {} of {} questions have no prediction ({}); expected one per question, \"\" for no answer",
        set.name, unanswered.size(), set.questions.size(), first_ids(unanswered));
  }
  if (!without_prob.empty())
    throw DataError("{}: {} of {} questions have no na_prob ({})", set.name, without_prob.size(),
                    set.questions.size(), first_ids(without_prob));
  nlohmann::ordered_json json;
  add_means(all, "", std::nullopt, json);
  add_means(all, "HasAns_", true, json);
  add_means(all, "NoAns_", false, json);
  if (na_probs == nullptr) return json;
  std::vector<std::pair<size_t, double>> by_prob;
  for (const auto& [id, prob] : *na_probs)
    if (const auto found = index_of.find(id); found != index_of.end())
      by_prob.emplace_back(found->second, prob);
  std::ranges::stable_sort(by_prob, {}, &std::pair<size_t, double>::second);
  std::tie(json["best_exact"], json["best_exact_thresh"]) = best_threshold(all, &AnswerScore::exact, by_prob);
  std::tie(json["best_f1"], json["best_f1_thresh"]) = best_threshold(all, &AnswerScore::f1, by_prob);
  return json;
}

nlohmann::ordered_json squad_v1(const corpus::QuestionSet& set, const Predictions& predictions) {
  set.require_distinct_ids();
  double exact = 0, f1 = 0;
  for (const corpus::Question& question : set.questions) {
    if (question.answers.empty())
      throw DataError("{} has no answer, which SQuAD 1.1 does not allow; score it as 2.0",
                      set.where(question));
    const auto predicted = predictions.find(question.id);
    if (predicted == predictions.end()) continue;
    Comparison comparison(predicted->second);
    for (const corpus::Answer& answer : question.answers) comparison.with(answer.text, false);
    exact += comparison.best().exact;
    f1 += comparison.best().f1;
  }
  const auto total = static_cast<double>(set.questions.size());
  return {{"exact_match", 100.0 * exact / total}, {"f1", 100.0 * f1 / total}};
}

}  // namespace stretto::metrics
