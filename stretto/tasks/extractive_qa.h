#pragma once

#include <vector>

#include "stretto/corpus/squad.h"
#include "stretto/data/question_dataset.h"
#include "stretto/tasks/model_module.h"
#include "stretto/tasks/span_answers.h"

namespace stretto::tasks {

// Fine-tunes a model with two scores for each token, whether the answer begins and whether it ends there, on
// the packed batches of a data::QuestionDataset (Devlin et al. 2019, section 4.2).
class ExtractiveQa : public ModelModule {
 public:
  // The arguments are those of ModelModule.
  ExtractiveQa(const ModelConfig& config, const AnswerOptions& options, uint64_t seed,
               const ModelRegistry& models = bundled_models(), const nn::TensorParallel& ranks = {});

  // The questions that are evaluated from now on. Both must outlive the evaluation.
  void evaluate_on(const corpus::QuestionSet& questions, const data::QuestionDataset& dataset) {
    questions_ = &questions;
    dataset_ = &dataset;
  }

  // The mean over samples of the mean of two cross entropies over the tokens of the sample: of the start and
  // of the end.
  Loss training_step(const Batch& batch, StepContext& context) override;

  // One row per sample: its index, its loss, the scores of token 0 and the n_best_size best starts and ends,
  // each a token and its score.
  Predictions validation_step(const Batch& batch, StepContext& context) override;

  // The loss, and the metrics of SQuAD 2.0 (metrics::squad_v2, with the odds as na_probs and no threshold) or
  // 1.1, of the questions that have a sample among the rows.
  Metrics metrics(const Predictions& predictions) const override;

  // The answers to all questions; questions without a sample among the rows have no answer.
  std::vector<QuestionAnswers> answers(const Predictions& predictions) const;

 private:
  AnswerOptions options_;
  const corpus::QuestionSet* questions_ = nullptr;
  const data::QuestionDataset* dataset_ = nullptr;
};

// The scores of answers in metrics(), with the names of the official scripts.
nlohmann::ordered_json squad_scores(const corpus::QuestionSet& questions,
                                    std::span<const QuestionAnswers> answers, bool null_answers);

// The scores of each sequence of a packed batch: [T, 2] -> [B, longest, 2], -inf after its end.
Tensor scores_by_sequence(const Tensor& logits, const Batch& batch);

// The rows of validation_step. `scores`: see scores_by_sequence. Returns [B, 2 + 4 n_best]: the scores of
// token 0, then pairs of token and score.
Tensor best_tokens(const Tensor& scores, int64_t n_best);
WindowScores window_scores(std::span<const double> row);

}  // namespace stretto::tasks
