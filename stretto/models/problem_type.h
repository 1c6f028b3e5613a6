#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace stretto {

// What a sequence classification computes from its logits: problem_type in a Hugging Face config.json.
enum class ProblemType { single_label_classification, regression, multi_label_classification };

const char* name_of(ProblemType problem);

// Throws ConfigError, which begins with `place`, for an unknown name.
ProblemType parse_problem_type(const std::string& name, const std::string& place);

// As transformers reads it: without one, a regression if there is a single label, else a classification.
ProblemType read_problem_type(const nlohmann::json& config, size_t labels, const std::string& source);

}  // namespace stretto
