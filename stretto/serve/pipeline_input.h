#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/option_names.h"

namespace stretto {

// The input of one prediction.
struct PipelineInput {
  std::string text;                           // for question answering, the question
  std::optional<std::string> text_pair = {};  // for question answering, the context
  // The words of a text that is already split; `text` has them joined by spaces.
  std::optional<std::vector<std::string>> words = {};
};

// The kind of each input of a pipeline.
enum class InputKind {
  text,           // one text
  text_or_pair,   // a text or a pair: the folder does not state which of them the model was trained on
  text_pair,      // two texts
  text_or_words,  // a text, or its words
  question,       // a question and its context
};

// Receives inputs, and where they were read: "reviews.jsonl:3".
using UseInput = std::function<void(PipelineInput input, const std::string& place)>;

// Parses the inputs of a pipeline: lines of text, or the JSON that Hugging Face's pipelines and inference
// servers accept.
struct InputParser {
  InputKind kind = InputKind::text;
  // The words of a text are separated by white space, and a list of strings is a list of words. REQUIRES:
  // text_or_words.
  bool split_into_words = false;
  OptionNames names = {};

  // Parses a line of text, in which a tab separates the two texts of a pair. Throws DataError, which begins
  // with `place`.
  PipelineInput parse_line(std::string_view line, const std::string& place) const;

  // Parses one input or several: a string, an object, a list of these, or {"inputs": ...}. Throws DataError
  // for a value of another form, with its position in `value`.
  void parse_json(const nlohmann::json& value, const std::string& place, const UseInput& use) const;

  // Whether `value` is a list of several inputs.
  bool is_list_of_inputs(const nlohmann::json& value) const;

  // Parses one element of such a list. Throws like parse_json().
  void parse_element(const nlohmann::json& value, const std::string& place, const UseInput& use) const;

 private:
  void parse_values(const nlohmann::json& value, const std::string& place, const std::string& key,
                    const UseInput& use) const;
  void parse_object(const nlohmann::json& object, const std::string& place, const UseInput& use) const;
  void parse_questions(const nlohmann::json& object, const std::string& place, const UseInput& use) const;
};

}  // namespace stretto
