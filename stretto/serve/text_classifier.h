#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/serve/pipeline.h"

namespace stretto {
namespace text {
struct Encoding;
}
enum class ProblemType;
}  // namespace stretto

namespace stretto::serve {

struct ServedModel;

// A text classifier from a model folder.
class TextClassifier : public Pipeline {
 public:
  // Throws DataError if weights are missing in the folder or not finite.
  explicit TextClassifier(const std::filesystem::path& folder, const PipelineOptions& options = {},
                          const ModelRegistry& models = bundled_models());
  ~TextClassifier() override;

  // Logits [inputs, labels], on CPU in fp64. Texts longer than the model's max_length are truncated.
  Tensor logits(std::span<const PipelineInput> inputs) const;

  // `output`: label (the best class and its probability; with top_k the best ones as `classes`; multi-label
  // also the labels with a probability of at least 0.5), scores (all probabilities), logits, or pipeline. The
  // score of a regression is the predicted number. The record of a truncated text has truncated: true, except
  // with pipeline.
  std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                              const std::string& output) const override;

  InputKind input_kind() const override { return kind_; }
  const std::vector<std::string>& labels() const;

 private:
  text::Encoding encode(const PipelineInput& input, bool truncated) const;
  bool is_truncated(const PipelineInput& input, const text::Encoding& encoding) const;
  Tensor logits_of(std::span<const text::Encoding> encodings) const;
  nlohmann::ordered_json record(const PipelineInput& input, const Tensor& logits,
                                const std::string& output) const;
  nlohmann::ordered_json best_classes(const Tensor& scores) const;

  std::unique_ptr<const ServedModel> served_;
  InputKind kind_;
  std::optional<int64_t> top_k_;
  ProblemType problem_;
};

PipelineType text_classification_pipeline();  // for the registry

}  // namespace stretto::serve
