#pragma once

#include <string>

// The heads of the bundled models, with Hugging Face's names at the end of architectures:
// "BertForSequenceClassification". Families of other programs may have other heads.
namespace stretto::heads {

inline constexpr const char* sequence_classification = "SequenceClassification";
inline constexpr const char* token_classification = "TokenClassification";
inline constexpr const char* question_answering = "QuestionAnswering";
// Predicts the next token of a text; the architecture "GPT2LMHeadModel" has this head, too.
inline constexpr const char* causal_language_model = "CausalLM";
// No head: the model computes states that another model reads (HiddenStates).
inline constexpr const char* hidden_states = "Model";

// The architecture in config.json: "BertForTokenClassification", or "BertModel" without a head.
inline std::string architecture(const std::string& family, const std::string& head) {
  return family + (head == hidden_states ? "" : "For") + head;
}

}  // namespace stretto::heads
