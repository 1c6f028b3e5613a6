#include "stretto/tasks/token_tagging.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/capabilities.h"

namespace stretto::tasks {

TokenTagging::TokenTagging(const ModelConfig& config, const std::vector<std::string>& tags, uint64_t seed,
                           const ModelRegistry& models)
    : ModelModule(config, heads::token_classification, tags, seed, models), labeller_(labeller_of(net())) {}

void TokenTagging::take_states(std::shared_ptr<KeptStates> of_training,
                               std::shared_ptr<KeptStates> of_evaluation) {
  training_states_ = std::move(of_training);
  evaluation_states_ = std::move(of_evaluation);
}

Tensor TokenTagging::logits_of(Batch batch, KeptStates* states, const StepContext& context) const {
  if (states != nullptr) states->add_to(batch, *net().capabilities().frozen_states, context.forward);
  return net().forward(batch, context.forward);
}

Loss TokenTagging::training_step(const Batch& batch, StepContext& context) {
  const Tensor logits = logits_of(batch, training_states_.get(), context);
  Loss loss = labeller_.loss(logits, batch, context.forward, loss_.weights);
  if (loss_.per_sentence) loss.count = static_cast<double>(batch.count);
  return loss;
}

Tensor TokenTagging::validation_step(const Batch& batch, StepContext& context) {
  const Tensor logits = logits_of(batch, evaluation_states_.get(), context);
  const Tensor best = labeller_.best_tags(logits, batch).to(at::kCPU).contiguous(),
               words = batch.at("words").to(at::kCPU).contiguous(),
               bounds = batch.at("cu_seqlens").to(at::kCPU).contiguous();
  const int64_t width = 3 + dataset_->max_words();
  const Tensor rows = at::full({batch.count, width}, -1.0, at::kDouble);
  const bool labelled = batch.has("labels");
  const SequenceLosses losses = labelled ? labeller_.losses(logits, batch)
                                         : SequenceLosses{at::zeros({batch.count}), at::zeros({batch.count})};
  double* const values = rows.data_ptr<double>();
  for (int64_t b = 0; b < batch.count; ++b) {
    double* const row = values + b * width;
    row[0] = static_cast<double>(batch.sample_ids[static_cast<size_t>(b)]);
    row[1] = losses.sums[b].item<double>();
    row[2] = losses.counts[b].item<double>();
    const int64_t end = bounds.const_data_ptr<int64_t>()[b + 1];
    for (int64_t t = bounds.const_data_ptr<int64_t>()[b]; t < end; ++t) {
      const int64_t word = words.const_data_ptr<int64_t>()[t];
      if (word >= 0) row[3 + word] = static_cast<double>(best.const_data_ptr<int64_t>()[t]);
    }
  }
  return rows;
}

// The scores of the sentences whose samples are all among the rows; nullopt if there are none.
std::optional<metrics::SpanScores> TokenTagging::spans(const Tensor& rows) const {
  data::TaggedDataset::Tags tags = tags_of(rows);
  std::vector<std::vector<int32_t>> gold, found;
  for (size_t i = 0; i < tags.ids.size(); ++i) {
    if (!tags.whole[i]) continue;
    gold.push_back(dataset_->gold()[i]);
    found.push_back(std::move(tags.ids[i]));
  }
  if (gold.empty()) return std::nullopt;
  return metrics::SpanScores(names_of(gold), names_of(found));
}

Metrics TokenTagging::metrics(const Tensor& rows) const {
  if (!dataset_->has_tags()) return {};
  const Tensor sums = rows.slice(1, 1, 3).sum(0);
  Metrics metrics = {{"loss", sums[0].item<double>() / std::max(1.0, sums[1].item<double>())}};
  const auto scores = spans(rows);
  if (!scores) return metrics;
  const metrics::Scores all = scores->micro();
  metrics.insert({{"precision", all.precision},
                  {"recall", all.recall},
                  {"f1", all.f1},
                  {"f1_macro", scores->macro().f1},
                  {"accuracy", scores->accuracy()}});
  return metrics;
}

std::string TokenTagging::table(const Tensor& rows) const {
  if (!dataset_->has_tags()) return "";
  const auto scores = spans(rows);
  return scores ? scores->table() : "";
}

data::TaggedDataset::Tags TokenTagging::tags_of(const Tensor& rows) const {
  std::vector<int64_t> samples;
  std::vector<std::vector<int32_t>> ids;
  const Tensor values = rows.contiguous();
  const int64_t width = values.size(1);
  for (int64_t i = 0; i < values.size(0); ++i) {
    const double* const row = values.const_data_ptr<double>() + i * width;
    samples.push_back(static_cast<int64_t>(row[0]));
    auto& tags = ids.emplace_back();
    for (int64_t k = 3; k < width; ++k) tags.push_back(static_cast<int32_t>(row[k]));
  }
  return dataset_->by_sentence(samples, ids);
}

std::vector<std::vector<std::string>> TokenTagging::predicted(const Tensor& rows) const {
  return names_of(tags_of(rows).ids);
}

std::vector<std::vector<std::string>> TokenTagging::gold() const { return names_of(dataset_->gold()); }

std::vector<std::vector<std::string>> TokenTagging::names_of(
    const std::vector<std::vector<int32_t>>& ids) const {
  const auto& labels = net().labels();
  std::vector<std::vector<std::string>> names;
  for (const auto& sentence : ids) {
    auto& tags = names.emplace_back();
    for (const int32_t id : sentence) tags.push_back(id < 0 ? "O" : labels.at(static_cast<size_t>(id)));
  }
  return names;
}

}  // namespace stretto::tasks
