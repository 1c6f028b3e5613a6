#include "stretto/tasks/extractive_qa.h"

#include <cmath>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/metrics/squad.h"
#include "stretto/model_config/heads.h"

namespace stretto::tasks {
namespace {

// Half of the cross entropies of start and end, [B].
Tensor losses_of(const Tensor& scores, const Batch& batch) {
  const Tensor log_probabilities = at::log_softmax(scores, 1);
  const Tensor wanted = at::stack({batch.at("starts"), batch.at("ends")}, 1).unsqueeze(1);  // [B, 1, 2]
  return log_probabilities.gather(1, wanted).squeeze(1).mean(1).neg();
}

}  // namespace

Tensor scores_by_sequence(const Tensor& logits, const Batch& batch) {
  const Tensor bounds = batch.at("cu_seqlens"), lengths = bounds.diff();
  const int64_t tokens = bounds[-1].item<int64_t>(), longest = lengths.max().item<int64_t>();
  const Tensor sequence = at::repeat_interleave(lengths);  // of each token
  const Tensor place = sequence * longest + batch.at("position_ids").slice(0, 0, tokens);
  const Tensor scores =
      logits.slice(0, 0, tokens).to(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  return at::full({batch.count * longest, 2}, -std::numeric_limits<double>::infinity(), scores.options())
      .index_copy(0, place, scores)
      .view({batch.count, longest, 2});
}

Tensor best_tokens(const Tensor& scores, int64_t n_best) {
  const Tensor all = scores.to(at::kCPU, at::kDouble);
  const int64_t count = std::min(n_best, all.size(1));
  const auto [values, tokens] = at::topk(all, count, 1);  // [B, count, 2]
  Tensor rows =
      at::full({all.size(0), 2 + 4 * n_best}, -std::numeric_limits<double>::infinity(), at::kDouble);
  rows.slice(1, 0, 2).copy_(all.select(1, 0));
  for (int64_t side = 0; side < 2; ++side) {
    const int64_t begin = 2 + 2 * n_best * side;
    rows.slice(1, begin, begin + 2 * count, 2).copy_(tokens.select(2, side));
    rows.slice(1, begin + 1, begin + 2 * count, 2).copy_(values.select(2, side));
  }
  return rows;
}

WindowScores window_scores(std::span<const double> row) {
  WindowScores window{.null_start = row[0], .null_end = row[1], .starts = {}, .ends = {}};
  const std::span<const double> pairs = row.subspan(2);
  const size_t half = pairs.size() / 2;
  for (size_t i = 0; i < half; i += 2) {
    if (std::isfinite(pairs[i + 1])) window.starts.push_back({static_cast<int64_t>(pairs[i]), pairs[i + 1]});
    if (std::isfinite(pairs[half + i + 1]))
      window.ends.push_back({static_cast<int64_t>(pairs[half + i]), pairs[half + i + 1]});
  }
  return window;
}

ExtractiveQa::ExtractiveQa(const ModelConfig& config, const AnswerOptions& options, uint64_t seed,
                           const ModelRegistry& models, const nn::TensorParallel& ranks)
    : ModelModule(config, heads::question_answering, {}, seed, models, ranks), options_(options) {}

Loss ExtractiveQa::training_step(const Batch& batch, StepContext& context) {
  const Tensor scores = scores_by_sequence(net().forward(batch, context.forward), batch);
  return {losses_of(scores, batch).sum(), batch.count};
}

Predictions ExtractiveQa::validation_step(const Batch& batch, StepContext& context) {
  const Tensor scores = scores_by_sequence(net().forward(batch, context.forward), batch);
  const Tensor losses = losses_of(scores, batch).to(at::kCPU, at::kDouble);
  const Tensor samples = at::tensor(batch.sample_ids, at::kDouble);
  return at::cat({at::stack({samples, losses}, 1), best_tokens(scores, options_.n_best_size)}, 1);
}

std::vector<QuestionAnswers> ExtractiveQa::answers(const Predictions& predictions) const {
  const Tensor& values = predictions.rows;
  std::vector<WindowScores> windows(static_cast<size_t>(dataset_->size()));
  const auto width = static_cast<size_t>(values.size(1));
  for (int64_t i = 0; i < values.size(0); ++i) {
    const double* const row = values.const_data_ptr<double>() + i * values.size(1);
    windows[static_cast<size_t>(row[0])] = window_scores({row + 2, width - 2});
  }
  return answer_questions(*questions_, *dataset_, windows, options_);
}

Metrics ExtractiveQa::metrics(const Predictions& predictions) const {
  const Tensor& rows = predictions.rows;
  Metrics metrics = {{"loss", rows.select(1, 1).mean().item<double>()}};
  std::vector<bool> has_sample(questions_->questions.size());
  for (int64_t i = 0; i < rows.size(0); ++i)
    has_sample[static_cast<size_t>(dataset_->question(rows[i][0].item<int64_t>()))] = true;
  corpus::QuestionSet asked;
  asked.name = questions_->name;
  std::vector<QuestionAnswers> answered;
  auto all = answers(predictions);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!has_sample[i]) continue;
    asked.questions.push_back(questions_->questions[i]);
    answered.push_back(std::move(all[i]));
  }
  const nlohmann::ordered_json scores = squad_scores(asked, answered, options_.null_answers);
  for (const auto& [name, score] : scores.items()) metrics[name] = score.get<double>();
  return metrics;
}

nlohmann::ordered_json squad_scores(const corpus::QuestionSet& questions,
                                    std::span<const QuestionAnswers> answers, bool null_answers) {
  metrics::Predictions predictions;
  metrics::NullOdds odds;
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& id = questions.questions[i].id;
    predictions[id] = answers[i].answer;
    if (answers[i].null_odds) odds.emplace_back(id, *answers[i].null_odds);
  }
  if (!null_answers) return metrics::squad_v1(questions, predictions);
  return metrics::squad_v2(questions, predictions, &odds, std::numeric_limits<double>::infinity());
}

}  // namespace stretto::tasks
