#include "stretto/tasks/causal_language_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/generate/text_generator.h"
#include "stretto/model_config/heads.h"

namespace stretto::tasks {
namespace {

// Rows whose logits are in memory at a time during evaluation.
constexpr int64_t rows_at_once = 256;

constexpr int64_t most_sample_tokens = 64;
constexpr const char* generation_config_name = "generation_config.json";

// The shortest batch.
Batch one_token(at::Device device) {
  const auto ids = [&](const std::vector<int64_t>& values) { return at::tensor(values).to(device); };
  Batch batch;
  batch.tensors = {{"input_ids", ids({0})},
                   {"position_ids", ids({0})},
                   {"samples", ids({0})},
                   {"cu_seqlens", ids({0, 1})}};
  batch.count = 1;
  return batch;
}

// [N, 2] fp64: for each of the rows [N, H] the cross entropy of its label, and whether the label has the
// largest logit.
Tensor score(const CausalDecoder& decoder, const Tensor& rows, const Tensor& labels) {
  const Tensor scores = at::empty({rows.size(0), 2}, at::dtype(at::kDouble).device(rows.device()));
  for (int64_t begin = 0; begin < rows.size(0); begin += rows_at_once) {
    const int64_t end = std::min(begin + rows_at_once, rows.size(0));
    const Tensor logits = decoder.logits(rows.slice(0, begin, end)).to(at::kFloat);
    const Tensor wanted = labels.slice(0, begin, end);
    const Tensor part = scores.slice(0, begin, end);
    part.select(1, 0).copy_(logits.logsumexp(1) - logits.gather(1, wanted.unsqueeze(1)).squeeze(1));
    part.select(1, 1).copy_(logits.argmax(1).eq(wanted));
  }
  return scores;
}

}  // namespace

CausalLanguageModel::CausalLanguageModel(const ModelConfig& config, uint64_t seed,
                                         const ModelRegistry& models, const nn::TensorParallel& ranks)
    : ModelModule(config, heads::causal_language_model, {}, seed, models, ranks) {
  if (net().capabilities().causal_decoder == nullptr)
    throw ConfigError("the model has a head for language modelling but is not a causal decoder");
  if (config.path) generation_config_ = read_if_exists(*config.path / generation_config_name);
}

void CausalLanguageModel::save_companions(const std::filesystem::path& folder) const {
  ModelModule::save_companions(folder);
  if (!generation_config_.empty()) write_file_atomic(folder / generation_config_name, generation_config_);
}

void CausalLanguageModel::write_with(text::Tokenizer tokenizer, const std::vector<std::string>& texts,
                                     const std::string& setting) {
  tokenizer_ = std::move(tokenizer);
  const TextGenerator generator(net(), *tokenizer_, {});
  for (size_t i = 0; i < texts.size(); ++i) {
    try {
      generator.require(texts[i]);
    } catch (const DataError& error) {
      throw ConfigError("{}: text {}: {}", setting, i + 1, error.what());
    }
  }
}

std::vector<std::string> CausalLanguageModel::continue_texts(const std::vector<std::string>& texts,
                                                             nn::Kernels kernels,
                                                             const std::function<bool(bool)>& next_pass) {
  std::vector<std::string> continuations;
  std::function<void()> before_pass;
  if (next_pass) before_pass = [&] { next_pass(true); };
  TextGenerator generator(net(), *tokenizer_,
                          {.generation = {.max_new_tokens = most_sample_tokens},
                           .batch_size = std::max<int64_t>(1, std::ssize(texts)),
                           .on_text = [&](int64_t, const std::string&,
                                          const auto& found) { continuations.push_back(found.front().text); },
                           .before_pass = before_pass,
                           .kernels = kernels});
  for (const std::string& text : texts) generator.add(text);
  generator.finish();
  while (next_pass && next_pass(false))
    net().forward(one_token(net().parameters().front().device()), {.kernels = kernels});
  return continuations;
}

nlohmann::json CausalLanguageModel::exported_config() const {
  nlohmann::json config = ModelModule::exported_config();
  if (end_token_ && !config.contains("eos_token_id")) config["eos_token_id"] = *end_token_;
  return config;
}

Loss CausalLanguageModel::training_step(const Batch& batch, StepContext& context) {
  return decoder().loss(net().forward(batch, context.forward), batch.at("labels"), context.forward);
}

Predictions CausalLanguageModel::validation_step(const Batch& batch, StepContext& context) {
  const Tensor hidden = net().forward(batch, context.forward);
  const Tensor& labels = batch.at("labels");
  const Tensor predicted = labels.ge(0).nonzero().squeeze(1);
  const Tensor scores =
      score(decoder(), hidden.index_select(0, predicted), labels.index_select(0, predicted)).cpu();
  // Row r belongs to the last sample that begins at or before r.
  const Tensor begins = batch.at("cu_samples").cpu();
  const Tensor samples =
      at::bucketize(predicted.cpu(), begins.slice(0, 1), /*out_int32=*/false, /*right=*/true);
  const Tensor rows = at::zeros({batch.count, 3}, at::kDouble);
  const Tensor ones = at::ones({scores.size(0)}, at::kDouble);
  rows.index_add_(0, samples, at::stack({scores.select(1, 0), ones, scores.select(1, 1)}, 1));
  return rows;
}

Metrics CausalLanguageModel::metrics(const Predictions& predictions) const {
  const Tensor sums = predictions.rows.sum(0);
  const double count = sums[1].item<double>();
  if (count == 0) throw DataError("no token is predicted: every document or block has one token only");
  const double loss = sums[0].item<double>() / count;
  Metrics metrics = {
      {"loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", sums[2].item<double>() / count}};
  if (bytes_per_token_ > 0) metrics["bits_per_byte"] = loss / std::numbers::ln2 / bytes_per_token_;
  return metrics;
}

}  // namespace stretto::tasks
