#include "stretto/serve/pipeline_input.h"

#include <algorithm>
#include <span>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/text/utf8.h"

namespace stretto {
namespace {

const char* expected_form(InputKind kind) {
  switch (kind) {
    case InputKind::text:
      return R"("..." or {"text": "..."})";
    case InputKind::text_or_pair:
      return R"("...", {"text": "..."} or {"text": "...", "text_pair": "..."})";
    case InputKind::text_pair:
      return R"({"text": "...", "text_pair": "..."}, for the model was trained on pairs of texts)";
    case InputKind::text_or_words:
      return R"("...", {"text": "..."} or {"tokens": ["...", "..."]})";
    case InputKind::question:
      break;
  }
  return R"({"question": "...", "context": "..."})";
}

std::vector<std::string> keys_of(InputKind kind) {
  switch (kind) {
    case InputKind::text:
      return {"text"};
    case InputKind::text_or_words:
      return {"text", "tokens", "words"};
    case InputKind::question:
      return {"question", "context"};
    default:
      return {"text", "text_pair"};
  }
}

std::string found_form(const nlohmann::json& value) {
  if (value.is_null()) return "null";
  if (value.is_string()) return "one text";
  if (value.is_array()) return "a list inside a list";
  if (!value.is_object()) return fmt::format("a {}", value.type_name());
  std::vector<std::string> keys;
  for (const auto& [key, _] : value.items()) keys.push_back("\"" + key + "\"");
  return keys.empty() ? "an empty object" : fmt::format("an object with {}", fmt::join(keys, ", "));
}

bool is_list_of_strings(const nlohmann::json& value) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const nlohmann::json& item) { return item.is_string(); });
}

std::string string_of(const nlohmann::json& object, const std::string& key, const std::string& place) {
  if (!object.at(key).is_string())
    throw DataError("{}: \"{}\" is {}; expected a string", place, key, object.at(key).dump().substr(0, 40));
  return object.at(key).get<std::string>();
}

bool has(const nlohmann::json& object, const std::string& key) {
  return object.contains(key) && !object.at(key).is_null();
}

PipelineInput sentence_of(std::vector<std::string> words) {
  return {.text = fmt::format("{}", fmt::join(words, " ")), .words = std::move(words)};
}

std::vector<std::string> words_of(std::string_view bytes) {
  std::string buffer;
  const auto words = split_words(text::replace_invalid_utf8(bytes, buffer));
  return {words.begin(), words.end()};
}

// Keys other than those of `kind` may belong to the data set; a key that is similar to one of them is a
// typing error.
void refuse_misspelt_keys(const nlohmann::json& object, InputKind kind, const std::string& place) {
  const std::vector<std::string> known = keys_of(kind);
  for (const auto& [key, _] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    if (const auto meant = closest(key, known); meant && !object.contains(*meant))
      throw DataError("{}: \"{}\" is not a key of an input; did you mean \"{}\"?", place, key, *meant);
  }
}

}  // namespace

PipelineInput InputParser::parse_line(std::string_view line, const std::string& place) const {
  const size_t tab = line.find('\t');
  if (kind == InputKind::text_pair || kind == InputKind::question) {
    const bool question = kind == InputKind::question;
    if (tab == std::string_view::npos) {
      throw DataError(
          "{}: found one text; expected {}, separated by a tab", place,
          question ? "a question and its context" : "two, for the model was trained on pairs of texts");
    }
    PipelineInput input = {std::string(line.substr(0, tab)), std::string(line.substr(tab + 1))};
    if (question && (input.text.empty() || input.text_pair->empty())) {
      throw DataError("{}: an empty {}; expected a question and its context, separated by a tab", place,
                      input.text.empty() ? "question" : "context");
    }
    return input;
  }
  if (split_into_words) return sentence_of(words_of(line));
  return {.text = std::string(line)};
}

void InputParser::parse_json(const nlohmann::json& value, const std::string& place,
                             const UseInput& use) const {
  if (!value.is_object() || !value.contains("inputs")) return parse_values(value, place, "", use);
  for (const auto& [key, other] : value.items()) {
    if (key != "inputs" && !other.empty())
      throw DataError("{}: \"{}\" is next to \"inputs\", but settings are {}", place, key,
                      names("members of PipelineOptions, such as top_k"));
  }
  parse_values(value.at("inputs"), place, "inputs", use);
}

bool InputParser::is_list_of_inputs(const nlohmann::json& value) const {
  return value.is_array() && !(split_into_words && !value.empty() && is_list_of_strings(value));
}

// `key`: the value's key, if it is a member of an object.
void InputParser::parse_values(const nlohmann::json& value, const std::string& place, const std::string& key,
                               const UseInput& use) const {
  if (!is_list_of_inputs(value)) return parse_element(value, key.empty() ? place : place + ": " + key, use);
  for (size_t i = 0; i < value.size(); ++i)
    parse_element(value[i], fmt::format("{}: {}[{}]", place, key, i), use);
}

void InputParser::parse_element(const nlohmann::json& value, const std::string& place,
                                const UseInput& use) const {
  const bool one_text = kind != InputKind::text_pair && kind != InputKind::question;
  if (value.is_object()) return parse_object(value, place, use);
  if (kind == InputKind::text_or_words && is_list_of_strings(value))
    return use(sentence_of(value.get<std::vector<std::string>>()), place);
  if (!value.is_string() || !one_text)
    throw DataError("{}: found {}; expected {}", place, found_form(value), expected_form(kind));
  use(parse_line(value.get<std::string>(), place), place);
}

void InputParser::parse_object(const nlohmann::json& object, const std::string& place,
                               const UseInput& use) const {
  refuse_misspelt_keys(object, kind, place);
  if (kind == InputKind::question) return parse_questions(object, place, use);
  const bool text = has(object, "text"), pair = has(object, "text_pair");
  if (kind == InputKind::text_or_words && (has(object, "tokens") || has(object, "words"))) {
    const char* key = has(object, "tokens") ? "tokens" : "words";
    const nlohmann::json& words = object.at(key);
    if (text) throw DataError("{}: found both \"text\" and \"{}\"; expected one of them", place, key);
    if (!is_list_of_strings(words))
      throw DataError("{}: \"{}\" is not a list of strings, the words of a text", place, key);
    return use(sentence_of(words.get<std::vector<std::string>>()), place);
  }
  if (!text || (kind == InputKind::text_pair && !pair))
    throw DataError("{}: found {}; expected {}", place, found_form(object), expected_form(kind));
  if (pair && kind != InputKind::text_pair && kind != InputKind::text_or_pair) {
    throw DataError("{}: found \"text_pair\", but the model reads single texts; expected {}", place,
                    expected_form(kind));
  }
  PipelineInput input = {.text = string_of(object, "text", place)};
  if (pair) input.text_pair = string_of(object, "text_pair", place);
  if (kind == InputKind::text_or_pair && input.text_pair == "")
    input.text_pair.reset();  // as in transformers
  if (split_into_words) input = sentence_of(words_of(input.text));
  use(std::move(input), place);
}

// Accepts what the question-answering pipeline does: two strings, two lists of equal length, or questions on
// one context.
void InputParser::parse_questions(const nlohmann::json& object, const std::string& place,
                                  const UseInput& use) const {
  if (!has(object, "question") || !has(object, "context"))
    throw DataError("{}: found {}; expected {}", place, found_form(object), expected_form(kind));
  const nlohmann::json &questions = object.at("question"), &contexts = object.at("context");
  const auto add = [&](const nlohmann::json& question, const nlohmann::json& context) {
    for (const auto& [name, value] : {std::pair("question", &question), std::pair("context", &context)}) {
      if (!value->is_string() || value->get<std::string>().empty())
        throw DataError("{}: the {} is {}; expected a string that is not empty", place, name,
                        value->dump().substr(0, 40));
    }
    use({question.get<std::string>(), context.get<std::string>()}, place);
  };
  if (!questions.is_array()) return add(questions, contexts);
  if (contexts.is_array() && contexts.size() != questions.size()) {
    throw DataError("{}: {} questions and {} contexts; expected as many of both, or one context for all",
                    place, questions.size(), contexts.size());
  }
  for (size_t i = 0; i < questions.size(); ++i)
    add(questions[i], contexts.is_array() ? contexts[i] : contexts);
}

}  // namespace stretto
