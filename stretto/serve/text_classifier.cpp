#include "stretto/serve/text_classifier.h"

#include "stretto/base/error.h"

namespace stretto {

TextClassifier::TextClassifier(const std::filesystem::path& folder, at::ScalarType dtype)
    : tokenizer_(text::Tokenizer::load(folder)), model_(BertConfig::read(folder / "config.json")) {
  const WeightReport report = model_.load(folder);
  if (!report.missing.empty()) {
    throw DataError("{}: the weights lack {}; fine-tune a classifier first (stretto train)", folder.string(),
                    fmt::join(report.missing, ", "));
  }
  model_.to(dtype);
  model_.eval();
}

Tensor TextClassifier::logits(const std::vector<std::string>& texts) const {
  at::NoGradGuard no_grad;
  const text::EncodeOptions options = {.special_tokens = true,
                                       .max_length = static_cast<size_t>(config().max_position_embeddings)};
  std::vector<int64_t> ids, types, positions, samples, bounds = {0};
  for (const std::string& text : texts) {
    const text::Encoding encoding = tokenizer_.encode(text, options);
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      ids.push_back(encoding.ids[i]);
      types.push_back(encoding.type_ids[i]);
      positions.push_back(static_cast<int64_t>(i));
      samples.push_back(std::ssize(bounds) - 1);
    }
    bounds.push_back(std::ssize(ids));
  }
  Batch batch;
  batch.count = std::ssize(texts);
  batch.tensors = {{"input_ids", at::tensor(ids)},
                   {"token_type_ids", at::tensor(types)},
                   {"position_ids", at::tensor(positions)},
                   {"samples", at::tensor(samples)},
                   {"cu_seqlens", at::tensor(bounds)}};
  return model_.forward(batch, {});
}

}  // namespace stretto
