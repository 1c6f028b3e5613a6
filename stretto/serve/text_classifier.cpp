#include "stretto/serve/text_classifier.h"

#include "stretto/base/error.h"
#include "stretto/data/packing.h"

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
  std::vector<text::Encoding> encodings;
  std::vector<std::vector<uint8_t>> types;
  std::vector<data::TokenSequence> sequences;
  for (const std::string& text : texts) {
    encodings.push_back(tokenizer_.encode(text, options));
    types.emplace_back(encodings.back().type_ids.begin(), encodings.back().type_ids.end());
  }
  for (size_t i = 0; i < texts.size(); ++i)
    sequences.push_back({encodings[i].ids, types[i], static_cast<int64_t>(i)});
  return model_.forward(data::pack_sequences(sequences), {});
}

}  // namespace stretto
