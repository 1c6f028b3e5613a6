#include "stretto/tasks/classification_results.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/metrics/class_report.h"
#include "stretto/metrics/correlation.h"
#include "stretto/metrics/glue.h"
#include "stretto/metrics/multi_label.h"
#include "stretto/metrics/ranking.h"
#include "stretto/nn/losses.h"

namespace stretto::tasks {
namespace {

template <class T>
std::span<const T> span_of(const Tensor& values) {
  return {values.const_data_ptr<T>(), static_cast<size_t>(values.numel())};
}

Tensor scores_of_logits(const Tensor& logits, ProblemType problem) {
  switch (problem) {
    case ProblemType::regression:
      return logits;
    case ProblemType::multi_label_classification:
      return at::sigmoid(logits);
    case ProblemType::single_label_classification:
      break;
  }
  return at::softmax(logits, 1);
}

metrics::Confusion confusion_of(const Tensor& logits, const Tensor& gold) {
  const Tensor predicted = logits.argmax(1).contiguous();
  return {span_of<int64_t>(predicted), span_of<int64_t>(gold), logits.size(1)};
}

metrics::MultiLabel multi_label_of(const Tensor& logits, const Tensor& gold,
                                   const std::vector<std::string>& labels) {
  const Tensor predicted = logits.ge(0).to(at::kByte).contiguous(),
               wanted = gold.gt(0).to(at::kByte).contiguous();
  return {span_of<uint8_t>(predicted), span_of<uint8_t>(wanted), labels};
}

}  // namespace

Loss classification_loss(const Tensor& logits, const Tensor& labels, const ClassificationSettings& settings,
                         const nn::Context& context) {
  const Tensor weights =
      settings.class_weights.empty() ? Tensor() : at::tensor(settings.class_weights, at::kDouble);
  switch (settings.problem) {
    case ProblemType::regression:
      return nn::squared_error(logits, labels);
    case ProblemType::multi_label_classification:
      return nn::binary_cross_entropy(logits, labels, weights);
    case ProblemType::single_label_classification:
      break;
  }
  return nn::cross_entropy(logits, labels,
                           {.class_weights = weights, .label_smoothing = settings.label_smoothing}, context);
}

Tensor classification_rows(const Tensor& logits, const Tensor& labels, ProblemType problem) {
  const Tensor values = logits.to(at::kCPU, at::kDouble);
  const int64_t columns = problem == ProblemType::multi_label_classification ? values.size(1) : 1;
  if (!labels.defined()) return at::cat({values, at::full({values.size(0), columns}, NAN, at::kDouble)}, 1);
  return at::cat({values, labels.to(at::kCPU, at::kDouble).reshape({-1, columns})}, 1);
}

ClassificationResults::ClassificationResults(const Tensor& rows, std::vector<std::string> labels,
                                             ClassificationSettings settings)
    : labels_(std::move(labels)),
      settings_(std::move(settings)),
      logits_(rows.slice(1, 0, width()).contiguous()),
      gold_(rows.slice(1, width()).contiguous()),
      scores_(scores_of_logits(logits_, settings_.problem).contiguous()),
      has_labels_(rows.size(0) > 0 && !gold_.isnan().any().item<bool>()) {
  if (settings_.problem == ProblemType::multi_label_classification) return;
  gold_ = gold_.squeeze(1);
  if (has_labels_ && settings_.problem == ProblemType::single_label_classification)
    gold_ = gold_.to(at::kLong).contiguous();
}

Metrics ClassificationResults::metrics() const {
  if (!has_labels_) return {};
  Metrics result;
  if (settings_.glue_task) {
    result = glue_metrics();
  } else if (settings_.problem == ProblemType::regression) {
    const Tensor predicted = logits_.squeeze(1).contiguous();
    result = {{"pearson", metrics::pearson(span_of<double>(predicted), span_of<double>(gold_))},
              {"spearmanr", metrics::spearman(span_of<double>(predicted), span_of<double>(gold_))}};
  } else if (settings_.problem == ProblemType::multi_label_classification) {
    result = multi_label_of(logits_, gold_, labels_).metrics();
    add_ranking_metrics(result);
  } else {
    const Tensor predicted = logits_.argmax(1).contiguous();
    result = metrics::classification_metrics(span_of<int64_t>(predicted), span_of<int64_t>(gold_), width());
    add_ranking_metrics(result);
  }
  const Loss loss = classification_loss(logits_, gold_, settings_);
  result["loss"] = loss.sum.item<double>() / loss.count;
  return result;
}

std::vector<std::string> ClassificationResults::possible_metrics(
    ProblemType problem, const std::optional<std::string>& glue_task) {
  std::vector<std::string> names = {"loss"};
  const auto add = [&](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (glue_task) {
    add(metrics::glue_task(*glue_task).metrics);
    if (names.size() > 2) add({"combined_score"});
  } else if (problem == ProblemType::regression) {
    add({"pearson", "spearmanr"});
  } else {
    add({"accuracy", "f1_macro", "f1_weighted", "auroc", "average_precision"});
    if (problem == ProblemType::multi_label_classification) add({"f1_micro"});
    if (problem == ProblemType::single_label_classification) add({"f1", "matthews_correlation"});
  }
  return names;
}

void ClassificationResults::add_ranking_metrics(Metrics& result) const {
  const bool single = settings_.problem == ProblemType::single_label_classification;
  Tensor wanted = single ? at::one_hot(gold_, width()) : gold_.gt(0), scores = scores_;
  if (single && width() == 2) {
    wanted = wanted.slice(1, 1);
    scores = scores.slice(1, 1);
  }
  wanted = wanted.to(at::kDouble).contiguous();
  scores = scores.contiguous();
  if (scores.isnan().any().item<bool>()) return;
  const auto value = [&](metrics::RankingFunction* metric) {
    return metrics::averaged(metric, span_of<double>(scores), span_of<double>(wanted), wanted.size(1),
                             metrics::Average::macro);
  };
  const Tensor of_class = wanted.sum(0);
  if (of_class.gt(0).logical_and(of_class.lt(wanted.size(0))).all().item<bool>())
    result["auroc"] = value(metrics::area_under_roc);
  result["average_precision"] = value(metrics::average_precision);
}

// Labels by name if they are the task's names, else by number.
Metrics ClassificationResults::glue_metrics() const {
  const metrics::GlueTask& task = metrics::glue_task(*settings_.glue_task);
  std::vector<std::string> gold, predicted;
  if (settings_.problem == ProblemType::regression) {
    for (int64_t i = 0; i < logits_.size(0); ++i) {
      gold.push_back(fmt::format("{}", gold_[i].item<double>()));
      predicted.push_back(fmt::format("{}", logits_[i][0].item<double>()));
    }
  } else {
    const bool named = std::ranges::all_of(labels_, [&](const std::string& label) {
      return std::ranges::find(task.labels, label) != task.labels.end();
    });
    const auto text = [&](int64_t id) {
      return named ? labels_[static_cast<size_t>(id)] : std::to_string(id);
    };
    const Tensor best = logits_.argmax(1);
    for (int64_t i = 0; i < logits_.size(0); ++i) {
      gold.push_back(text(gold_[i].item<int64_t>()));
      predicted.push_back(text(best[i].item<int64_t>()));
    }
  }
  Metrics result;
  const nlohmann::ordered_json scores = metrics::glue_scores(task, gold, predicted);
  for (const auto& [name, value] : scores.items())
    result[name] = value.is_number() ? value.get<double>() : NAN;
  return result;
}

std::string ClassificationResults::tables() const {
  if (!has_labels_ || settings_.problem == ProblemType::regression) return "";
  if (settings_.problem == ProblemType::multi_label_classification)
    return metrics::class_scores_table(multi_label_of(logits_, gold_, labels_).classes());
  const metrics::Confusion confusion = confusion_of(logits_, gold_);
  return metrics::class_scores_table(metrics::class_scores(confusion, labels_)) + "\n" +
         metrics::confusion_table(confusion, labels_);
}

nlohmann::ordered_json ClassificationResults::report() const {
  auto report = nlohmann::ordered_json::object();
  if (!has_labels_ || settings_.problem == ProblemType::regression) return report;
  if (settings_.problem == ProblemType::multi_label_classification) {
    report["classes"] = metrics::class_scores_json(multi_label_of(logits_, gold_, labels_).classes());
    return report;
  }
  const metrics::Confusion confusion = confusion_of(logits_, gold_);
  report["classes"] = metrics::class_scores_json(metrics::class_scores(confusion, labels_));
  report["confusion_matrix"] = metrics::confusion_json(confusion, labels_);
  return report;
}

std::vector<std::string> ClassificationResults::names_of(const Tensor& flags) const {
  std::vector<std::string> names;
  for (int64_t i = 0; i < width(); ++i)
    if (flags[i].item<bool>()) names.push_back(labels_[static_cast<size_t>(i)]);
  return names;
}

nlohmann::ordered_json ClassificationResults::prediction(int64_t sample) const {
  const Tensor scores = scores_[sample];
  nlohmann::ordered_json record;
  if (settings_.problem == ProblemType::regression) {
    record["prediction"] = scores[0].item<double>();
    if (has_labels_) record["gold"] = gold_[sample].item<double>();
    return record;
  }
  const auto best = scores.argmax().item<int64_t>();
  record = {{"label", labels_[static_cast<size_t>(best)]}, {"score", scores[best].item<double>()}};
  if (settings_.problem == ProblemType::single_label_classification) {
    if (has_labels_) record["gold"] = labels_[static_cast<size_t>(gold_[sample].item<int64_t>())];
    return record;
  }
  record["labels"] = names_of(logits_[sample].ge(0));
  for (int64_t i = 0; i < width(); ++i)
    record["scores"][labels_[static_cast<size_t>(i)]] = scores[i].item<double>();
  if (has_labels_) record["gold"] = names_of(gold_[sample].gt(0));
  return record;
}

std::vector<int64_t> ClassificationResults::most_wrong() const {
  if (!has_labels_) return {};
  Tensor trust, wrong;  // the confidence in each gold label, and whether the prediction counts as wrong
  switch (settings_.problem) {
    case ProblemType::single_label_classification:
      trust = scores_.gather(1, gold_.unsqueeze(1)).squeeze(1);
      wrong = logits_.argmax(1).ne(gold_);
      break;
    case ProblemType::regression:
      trust = (logits_.squeeze(1) - gold_).abs().neg();
      wrong = at::ones_like(trust, at::kBool);
      break;
    case ProblemType::multi_label_classification:
      trust = at::where(gold_.gt(0), scores_, 1 - scores_).amin(1);
      wrong = trust.lt(0.5);
      break;
  }
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < trust.size(0); ++i)
    if (wrong[i].item<bool>()) samples.push_back(i);
  const Tensor values = trust.contiguous();
  const double* of = values.const_data_ptr<double>();
  std::stable_sort(samples.begin(), samples.end(), [of](int64_t a, int64_t b) { return of[a] < of[b]; });
  return samples;
}

}  // namespace stretto::tasks
