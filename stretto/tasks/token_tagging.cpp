#include "stretto/tasks/token_tagging.h"

#include <algorithm>
#include <cstring>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/capabilities.h"

namespace stretto::tasks {

TokenTagging::TokenTagging(const ModelConfig& config, const std::vector<std::string>& tags, uint64_t seed,
                           const ModelRegistry& models, const nn::TensorParallel& ranks)
    : ModelModule(config, heads::token_classification, tags, seed, models, ranks),
      labeller_(labeller_of(net())) {}

void TokenTagging::take_states(std::shared_ptr<KeptStates> of_training,
                               std::shared_ptr<KeptStates> of_evaluation) {
  training_states_ = std::move(of_training);
  evaluation_states_ = std::move(of_evaluation);
}

Tensor TokenTagging::logits_of(Batch batch, KeptStates* states, const StepContext& context) const {
  if (states != nullptr) states->add_to(batch, *net().capabilities().frozen_states, context.forward);
  return net().forward(batch, context.forward);
}

// The choice is a function of the step's key and the sample, so that it does not depend on the ranks.
Batch TokenTagging::without_dropped_context(const Batch& batch, uint64_t key) const {
  std::vector<bool> dropped;
  for (const int64_t sample : batch.sample_ids) {
    const uint64_t place[] = {key, static_cast<uint64_t>(sample), hash64("context_dropout")};
    dropped.push_back(static_cast<double>(hash64(place) >> 11) * 0x1p-53 < context_dropout_);
  }
  Batch shorter = with_context_->pack_without_context(batch.sample_ids, dropped);
  shorter.count = batch.count;
  return shorter.to(batch.at("input_ids").device());
}

Loss TokenTagging::training_step(const Batch& given, StepContext& context) {
  const Batch batch = with_context_ != nullptr ? without_dropped_context(given, context.forward.key) : given;
  const Tensor logits = logits_of(batch, training_states_.get(), context);
  Loss loss = labeller_.loss(logits, batch, context.forward, loss_.weights);
  if (loss_.per_sentence) loss.count = static_cast<double>(batch.count);
  return loss;
}

Predictions TokenTagging::validation_step(const Batch& batch, StepContext& context) {
  const Tensor logits = logits_of(batch, evaluation_states_.get(), context);
  const Tensor best = labeller_.best_tags(logits, batch).to(at::kCPU).contiguous(),
               words = batch.at("words").to(at::kCPU).contiguous(),
               bounds = batch.at("cu_seqlens").to(at::kCPU).contiguous();
  const bool labelled = batch.has("labels");
  const SequenceLosses losses = labelled ? labeller_.losses(logits, batch)
                                         : SequenceLosses{at::zeros({batch.count}), at::zeros({batch.count})};
  const Tensor samples = at::tensor(batch.sample_ids, at::kDouble);
  const auto as_values = [](const Tensor& values) { return values.to(at::kCPU, at::kDouble); };
  Predictions predictions(at::stack({samples, as_values(losses.sums), as_values(losses.counts)}, 1));
  for (int64_t b = 0; b < batch.count; ++b) {
    std::vector<int32_t> tags;
    const int64_t end = bounds.const_data_ptr<int64_t>()[b + 1];
    for (int64_t t = bounds.const_data_ptr<int64_t>()[b]; t < end; ++t) {
      const int64_t word = words.const_data_ptr<int64_t>()[t];
      if (word < 0) continue;
      if (word >= std::ssize(tags)) tags.resize(static_cast<size_t>(word) + 1, -1);
      tags[static_cast<size_t>(word)] = static_cast<int32_t>(best.const_data_ptr<int64_t>()[t]);
    }
    predictions.bytes.emplace_back(reinterpret_cast<const char*>(tags.data()), tags.size() * sizeof(int32_t));
  }
  return predictions;
}

// The scores of the sentences whose samples are all among the rows; nullopt if there are none.
std::optional<metrics::SpanScores> TokenTagging::spans(const Predictions& predictions) const {
  data::TaggedDataset::Tags tags = tags_of(predictions);
  std::vector<std::vector<int32_t>> gold, found;
  for (size_t i = 0; i < tags.ids.size(); ++i) {
    if (!tags.whole[i]) continue;
    gold.push_back(dataset_->gold()[i]);
    found.push_back(std::move(tags.ids[i]));
  }
  if (gold.empty()) return std::nullopt;
  return metrics::SpanScores(names_of(gold), names_of(found));
}

Metrics TokenTagging::metrics(const Predictions& predictions) const {
  if (!dataset_->has_tags()) return {};
  const Tensor sums = predictions.rows.slice(1, 1, 3).sum(0);
  Metrics metrics = {{"loss", sums[0].item<double>() / std::max(1.0, sums[1].item<double>())}};
  const auto scores = spans(predictions);
  if (!scores) return metrics;
  const metrics::Scores all = scores->micro();
  metrics.insert({{"precision", all.precision},
                  {"recall", all.recall},
                  {"f1", all.f1},
                  {"f1_macro", scores->macro().f1},
                  {"accuracy", scores->accuracy()}});
  return metrics;
}

std::string TokenTagging::table(const Predictions& predictions) const {
  if (!dataset_->has_tags()) return "";
  const auto scores = spans(predictions);
  return scores ? scores->table() : "";
}

data::TaggedDataset::Tags TokenTagging::tags_of(const Predictions& predictions) const {
  std::vector<int64_t> samples;
  std::vector<std::vector<int32_t>> ids;
  for (size_t i = 0; i < predictions.bytes.size(); ++i) {
    const std::string& bytes = predictions.bytes[i];
    samples.push_back(static_cast<int64_t>(predictions.rows[static_cast<int64_t>(i)][0].item<double>()));
    auto& tags = ids.emplace_back(bytes.size() / sizeof(int32_t));
    std::memcpy(tags.data(), bytes.data(), bytes.size());
  }
  return dataset_->by_sentence(samples, ids);
}

std::vector<std::vector<std::string>> TokenTagging::predicted(const Predictions& predictions) const {
  return names_of(tags_of(predictions).ids);
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
