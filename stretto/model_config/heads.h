#pragma once

#include <string>

// The heads of the bundled models, named as Hugging Face names them at the end of architectures:
// "BertForSequenceClassification". Families of other programs may have further ones.
namespace stretto::heads {

inline constexpr const char* sequence_classification = "SequenceClassification";
inline constexpr const char* token_classification = "TokenClassification";
inline constexpr const char* question_answering = "QuestionAnswering";
// The next token of a text; "GPT2LMHeadModel" has it, too.
inline constexpr const char* causal_language_model = "CausalLM";
// No head: the model computes states that another model reads (HiddenStates).
inline constexpr const char* hidden_states = "Model";

// The architecture in config.json: "BertForTokenClassification", or "BertModel" without a head.
inline std::string architecture(const std::string& family, const std::string& head) {
  return family + (head == hidden_states ? "" : "For") + head;
}

}  // namespace stretto::heads
