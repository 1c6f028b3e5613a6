#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stretto/data/features/answers.h"
#include "stretto/serve/served_model.h"

namespace stretto::serve {

// Answers questions from their contexts with a model folder, as Hugging Face's question-answering pipeline
// does: contexts are split into windows of up to 384 tokens; consecutive windows share 128 tokens, or half of
// the tokens that the question leaves for the context if these are fewer; answers have up to 15 tokens, are
// extended to whole words, and are merged over windows. Leading white space of a question is ignored, as in
// training.
class QuestionAnswerer : public Pipeline {
 public:
  // Throws DataError if weights are missing in the folder or not finite.
  QuestionAnswerer(const std::filesystem::path& folder, const PipelineOptions& options,
                   const ModelRegistry& models = bundled_models());

  // `output`: label or pipeline (the best answer, or with top_k above 1 a list of up to top_k answers, best
  // first), or logits (the scores of each token of the first window). Throws ConfigError if top_k is not from
  // 1 to 1000, DataError for an empty question or context and for a question that leaves no room for its
  // context.
  std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                              const std::string& output) const override;

  InputKind input_kind() const override { return InputKind::question; }

 private:
  struct Window {
    size_t input;
    text::Encoding encoding;
    Tensor logits;  // [tokens, 2] fp64
  };

  std::vector<text::Encoding> windows(const PipelineInput& input) const;
  std::vector<Window> scored_windows(std::span<const PipelineInput> inputs) const;
  void score(std::span<Window> windows, std::span<const PipelineInput> inputs) const;
  std::vector<data::Answer> answers(std::span<const Window> windows, const PipelineInput& input) const;

  ServedModel served_;
  int64_t top_k_;
  bool null_answers_;
};

PipelineType question_answering_pipeline();  // for the registry

}  // namespace stretto::serve
