#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stretto/models/bert/model.h"
#include "stretto/text/tokenizer.h"

namespace stretto {

// A text classifier from a model folder: texts in, logits out.
class TextClassifier {
 public:
  // Throws DataError when the folder lacks weights of the model.
  explicit TextClassifier(const std::filesystem::path& folder, at::ScalarType dtype = at::kFloat);

  // [texts, num_labels] logits; texts longer than the model are cut.
  Tensor logits(const std::vector<std::string>& texts) const;

  const BertConfig& config() const { return model_.config(); }

 private:
  text::Tokenizer tokenizer_;
  BertForSequenceClassification model_;
};

}  // namespace stretto
