#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/data/tagged_dataset.h"
#include "stretto/metrics/spans.h"
#include "stretto/tasks/kept_states.h"
#include "stretto/tasks/model_module.h"

namespace stretto::tasks {

// Fine-tunes a model with a token classification head on the packed batches of a data::TaggedDataset.
class TokenTagging : public ModelModule {
 public:
  // The arguments are those of ModelModule. `tags`: the classes.
  TokenTagging(const ModelConfig& config, const std::vector<std::string>& tags, uint64_t seed,
               const ModelRegistry& models = bundled_models(), const nn::TensorParallel& ranks = {});

  // The weights and the denominator of losses.
  struct LossOptions {
    std::vector<double> weights = {};  // of each tag; empty: 1 each
    bool per_sentence = false;         // the mean over sentences of their sums, else over tokens or words
  };
  void set_loss(LossOptions options) { loss_ = std::move(options); }

  // The dataset that is evaluated from now on. It must outlive the evaluation.
  void evaluate_on(const data::TaggedDataset& dataset) { dataset_ = &dataset; }

  // Makes steps on samples of `train` leave out the context of each sample with this probability. `train`
  // must outlive the training. REQUIRES: its context is marked.
  void drop_context(const data::TaggedDataset& train, double probability) {
    with_context_ = &train;
    context_dropout_ = probability;
  }

  // Sets the source of the model's frozen states for the training samples and for those of evaluate_on.
  // Without it, the model computes them.
  void take_states(std::shared_ptr<KeptStates> of_training, std::shared_ptr<KeptStates> of_evaluation);

  // The mean over tokens with a label, or over words if the model scores whole sentences (SequenceLabeller),
  // as set_loss determines.
  Loss training_step(const Batch& batch, StepContext& context) override;

  // Per sample a row of its index, the sum of its losses and the number of labels in it, and as bytes the
  // best tag of each word (int32). REQUIRES: evaluate_on, with the dataset of the batch.
  Predictions validation_step(const Batch& batch, StepContext& context) override;

  // loss; precision, recall, f1 and f1_macro of the spans and accuracy of the words, as by seqeval
  // (metrics/spans.h), of the sentences whose samples are all among the rows. Empty if the dataset has no
  // tags.
  Metrics metrics(const Predictions& predictions) const override;

  // The scores of each type of span in these sentences; "" if there are none.
  std::string table(const Predictions& predictions) const override;

  // The predicted tags of each sentence. Words without a token, or beyond max_length, are outside.
  std::vector<std::vector<std::string>> predicted(const Predictions& predictions) const;
  std::vector<std::vector<std::string>> gold() const;

 private:
  std::optional<metrics::SpanScores> spans(const Predictions& predictions) const;
  Batch without_dropped_context(const Batch& batch, uint64_t key) const;
  Tensor logits_of(Batch batch, KeptStates* states, const StepContext& context) const;
  data::TaggedDataset::Tags tags_of(const Predictions& predictions) const;
  std::vector<std::vector<std::string>> names_of(const std::vector<std::vector<int32_t>>& ids) const;

  const SequenceLabeller& labeller_;
  LossOptions loss_;
  const data::TaggedDataset* dataset_ = nullptr;
  const data::TaggedDataset* with_context_ = nullptr;  // the training samples; null: no context is dropped
  double context_dropout_ = 0;
  std::shared_ptr<KeptStates> training_states_, evaluation_states_;
};

}  // namespace stretto::tasks
