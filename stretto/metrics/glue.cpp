#include "stretto/metrics/glue.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"
#include "stretto/metrics/classification.h"
#include "stretto/metrics/correlation.h"

namespace stretto::metrics {
namespace {

[[noreturn]] void refuse(const char* side, size_t row, const std::string& found,
                         const std::string& expected) {
  throw DataError("{} label {}: found \"{}\"; expected {}", side, row + 1, cut_utf8(found, 60), expected);
}

std::vector<int64_t> class_ids(const GlueTask& task, const char* side, std::span<const std::string> texts) {
  std::vector<int64_t> ids;
  for (size_t row = 0; row < texts.size(); ++row) {
    const auto name = std::ranges::find(task.labels, texts[row]);
    const auto number = parse_int(spelled_label(texts[row]));
    if (name != task.labels.end()) {
      ids.push_back(name - task.labels.begin());
    } else if (number && *number >= 0 && *number < std::ssize(task.labels)) {
      ids.push_back(*number);
    } else {
      refuse(side, row, texts[row],
             fmt::format("one of {}, or 0 to {}", fmt::join(task.labels, ", "), task.labels.size() - 1));
    }
  }
  return ids;
}

std::vector<double> numbers(const char* side, std::span<const std::string> texts) {
  std::vector<double> values;
  for (size_t row = 0; row < texts.size(); ++row) {
    const auto number = parse_double(texts[row]);
    if (!number || !std::isfinite(*number)) refuse(side, row, texts[row], "a finite number");
    values.push_back(*number);
  }
  return values;
}

double score(const std::string& metric, const Confusion& confusion) {
  if (metric == "accuracy") return accuracy(confusion);
  if (metric == "f1") return f1(confusion, 1);
  return matthews_correlation(confusion);
}

}  // namespace

const std::vector<GlueTask>& glue_tasks() {
  static const std::vector<std::string> entails = {"entailment", "not_entailment"},
                                        three = {"entailment", "neutral", "contradiction"};
  static const std::vector<GlueTask> tasks = {
      {"cola", {"unacceptable", "acceptable"}, {"matthews_correlation"}},
      {"sst2", {"negative", "positive"}, {"accuracy"}},
      {"mrpc", {"not_equivalent", "equivalent"}, {"accuracy", "f1"}},
      {"qqp", {"not_duplicate", "duplicate"}, {"accuracy", "f1"}},
      {"stsb", {}, {"pearson", "spearmanr"}},
      {"mnli", three, {"accuracy"}},
      {"mnli-mm", three, {"accuracy"}},
      {"qnli", entails, {"accuracy"}},
      {"rte", entails, {"accuracy"}},
      {"wnli", {"not_entailment", "entailment"}, {"accuracy"}},
      {"ax", three, {"accuracy"}}};
  return tasks;
}

const GlueTask& glue_task(const std::string& name) {
  std::vector<std::string> names;
  for (const GlueTask& task : glue_tasks()) {
    if (task.name == name) return task;
    names.push_back(task.name);
  }
  throw ConfigError("\"{}\" is not a task of GLUE{}; tasks are {}", name, did_you_mean(name, names),
                    fmt::join(names, ", "));
}

std::string spelled_label(const std::string& name) {
  constexpr std::string_view prefix = "LABEL_";
  return name.starts_with(prefix) && parse_int(name.substr(prefix.size())) ? name.substr(prefix.size())
                                                                           : name;
}

nlohmann::ordered_json glue_scores(const GlueTask& task, std::span<const std::string> gold,
                                   std::span<const std::string> predicted) {
  if (gold.size() != predicted.size())
    throw DataError("{} gold labels and {} predictions; expected equal numbers", gold.size(),
                    predicted.size());
  if (gold.empty()) throw DataError("there are no labels to score");
  nlohmann::ordered_json json;
  double sum = 0;
  const auto add = [&](const std::string& metric, double value) {
    json[metric] = value;
    sum += value;
  };
  if (task.labels.empty()) {
    const auto wanted = numbers("gold", gold), found = numbers("predicted", predicted);
    add("pearson", pearson(found, wanted));
    add("spearmanr", spearman(found, wanted));
  } else {
    const auto wanted = class_ids(task, "gold", gold), found = class_ids(task, "predicted", predicted);
    const Confusion confusion(found, wanted, std::ssize(task.labels));
    for (const std::string& metric : task.metrics) add(metric, score(metric, confusion));
  }
  if (json.size() > 1) json["combined_score"] = sum / static_cast<double>(json.size());
  return json;
}

}  // namespace stretto::metrics
