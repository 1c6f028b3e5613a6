#include "stretto/serve/pipeline_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/serve/input_reader.h"

namespace stretto::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "text|pair" of each input, words joined by "+".
std::vector<std::string> inputs_of(const InputParser& parser, const std::string& json) {
  std::vector<std::string> all;
  parser.parse_json(nlohmann::json::parse(json), "f:1", [&](const PipelineInput& input, const std::string&) {
    all.push_back(input.words ? fmt::format("{}", fmt::join(*input.words, "+")) : input.text);
    if (input.text_pair) all.back() += "|" + *input.text_pair;
  });
  return all;
}

std::string error_of(const InputParser& parser, const std::string& json) {
  return message_of<DataError>([&] { inputs_of(parser, json); });
}

const InputParser text = {InputKind::text}, text_or_pair = {InputKind::text_or_pair},
                  pair = {InputKind::text_pair}, words = {InputKind::text_or_words},
                  split = {InputKind::text_or_words, true}, question = {InputKind::question};

TEST(PipelineInput, TheFormsOfTextClassification) {
  for (const InputParser& parser : {text, text_or_pair, words}) {
    EXPECT_THAT(inputs_of(parser, R"("a b")"), ElementsAre("a b"));
    EXPECT_THAT(inputs_of(parser, R"(["a", {"text": "b", "id": 7}, ""])"), ElementsAre("a", "b", ""));
    EXPECT_THAT(inputs_of(parser, R"({"inputs": "a"})"), ElementsAre("a"));
    EXPECT_THAT(inputs_of(parser, R"({"inputs": ["a", {"text": "b"}], "parameters": {}})"),
                ElementsAre("a", "b"));
    EXPECT_THAT(inputs_of(parser, "[]"), ElementsAre());
  }
  for (const InputParser& parser : {text_or_pair, pair}) {
    EXPECT_THAT(inputs_of(parser, R"([{"text": "a", "text_pair": "b"}, {"text": "a", "text_pair": ""}])"),
                ElementsAre("a|b", parser.kind == InputKind::text_pair ? "a|" : "a"));
  }
  EXPECT_THAT(inputs_of(text_or_pair, R"({"text": "a", "text_pair": null})"), ElementsAre("a"));
}

TEST(PipelineInput, TheFormsOfTokenClassification) {
  EXPECT_THAT(inputs_of(words, R"({"tokens": ["a", "b"], "ner_tags": [0, 1]})"), ElementsAre("a+b"));
  EXPECT_THAT(inputs_of(words, R"([{"words": ["a"]}, "a b", ["c", "d"]])"), ElementsAre("a", "a b", "c+d"));
  EXPECT_THAT(inputs_of(words, R"(["a", "b"])"), ElementsAre("a", "b"));
  EXPECT_THAT(inputs_of(split, R"(["a", "b"])"), ElementsAre("a+b"));
  EXPECT_THAT(inputs_of(split, R"({"inputs": [["a", "b"], "c  d"]})"), ElementsAre("a+b", "c+d"));
  EXPECT_THAT(inputs_of(split, R"([[], ["a"]])"), ElementsAre("", "a"));
  EXPECT_EQ(split.parse_line(" a b\t c ", "f:1").words, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split.parse_line("a  b", "f:1").text, "a b");
}

TEST(PipelineInput, TheFormsOfQuestionAnswering) {
  EXPECT_THAT(inputs_of(question, R"({"question": "q", "context": "c", "id": "1", "answers": {}})"),
              ElementsAre("q|c"));
  EXPECT_THAT(inputs_of(question, R"({"inputs": {"question": "q", "context": "c"}})"), ElementsAre("q|c"));
  EXPECT_THAT(inputs_of(question, R"({"inputs": [{"question": "q", "context": "c"}]})"), ElementsAre("q|c"));
  EXPECT_THAT(inputs_of(question, R"({"question": ["q", "r"], "context": "c"})"), ElementsAre("q|c", "r|c"));
  EXPECT_THAT(inputs_of(question, R"({"question": ["q", "r"], "context": ["c", "d"]})"),
              ElementsAre("q|c", "r|d"));
}

TEST(PipelineInput, WrongInputsAreNamedWithTheirPlace) {
  EXPECT_THAT(error_of(text, "3"), has_all("f:1: found a number", R"("..." or {"text": "..."})"));
  EXPECT_THAT(error_of(text, R"(["a", ["b"]])"), HasSubstr("f:1: [1]: found a list inside a list; expected"));
  EXPECT_THAT(error_of(text, R"({"inputs": ["a", null]})"), HasSubstr("f:1: inputs[1]: found null"));
  EXPECT_THAT(error_of(text, R"({"inputs": "a", "parameters": {"top_k": 2}})"),
              has_all("f:1: \"parameters\"", "next to \"inputs\"", "PipelineOptions"));
  EXPECT_THAT(error_of(text, R"({"sentence": "a", "label": 1})"),
              HasSubstr("found an object with \"label\", \"sentence\"; expected"));
  EXPECT_THAT(error_of(text, R"({"texts": "a"})"),
              has_all("\"texts\"", "not a key", "did you mean \"text\"?"));
  EXPECT_THAT(error_of(text_or_pair, R"({"text": "a", "text_pairs": "b"})"),
              HasSubstr("did you mean \"text_pair\"?"));
  EXPECT_THAT(error_of(text, R"({"text": 5})"), HasSubstr("f:1: \"text\" is 5; expected a string"));
  EXPECT_THAT(error_of(text, R"({"text": "a", "text_pair": "b"})"),
              HasSubstr("found \"text_pair\", but the model reads single texts"));
  EXPECT_THAT(error_of(pair, R"("a")"),
              HasSubstr("found one text; expected {\"text\": \"...\", \"text_pair\": \"...\"}"));
  EXPECT_THAT(error_of(pair, R"({"text": "a"})"), HasSubstr("found an object with \"text\"; expected"));
  EXPECT_THAT(error_of(words, R"({"tokens": ["a", 3]})"), HasSubstr("\"tokens\" is not a list of strings"));
  EXPECT_THAT(error_of(words, R"({"tokens": ["a"], "text": "a"})"),
              HasSubstr("found both \"text\" and \"tokens\""));
  EXPECT_THAT(error_of(question, R"("q")"),
              HasSubstr("expected {\"question\": \"...\", \"context\": \"...\"}"));
  EXPECT_THAT(error_of(question, R"({"question": "q", "context": ""})"),
              HasSubstr("the context is \"\"; expected a string"));
  EXPECT_THAT(error_of(question, R"({"question": ["q", "r"], "context": ["c"]})"),
              HasSubstr("2 questions and 1 contexts"));
}

std::vector<std::string> places_of(const std::string& content, InputFormat format,
                                   const InputParser& parser = text) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "f", content);
  LineReader source(folder.path() / "f");
  std::vector<std::string> places;
  const auto short_place = [&](const std::string& place) {
    return place.substr(folder.path().string().size() + 1);
  };
  try {
    read_inputs(source, format, parser, [&](const PipelineInput& input, const std::string& place) {
      places.push_back(short_place(place) + " " + input.text);
    });
  } catch (const DataError& error) {
    places.push_back(short_place(error.what()));
  }
  return places;
}

TEST(InputReader, PlacesOfLines) {
  EXPECT_THAT(places_of("a\n\nb\r\n", InputFormat::text), ElementsAre("f:1 a", "f:2 ", "f:3 b"));
  EXPECT_THAT(places_of("\xef\xbb\xbf\"a\"\n\n[\"b\", \"c\"]\r\n", InputFormat::jsonl),
              ElementsAre("f:1 a", "f:3: [0] b", "f:3: [1] c"));
  EXPECT_THAT(places_of("\"a\"\n{\n", InputFormat::jsonl),
              ElementsAre("f:1 a", AllOf(HasSubstr("f:2:2: not valid JSON"),
                                         HasSubstr("expected one JSON value per line"))));
  EXPECT_THAT(places_of("\xff\xfe\x61", InputFormat::text),
              ElementsAre(HasSubstr("f: it is in UTF-16; expected UTF-8")));
  EXPECT_THAT(places_of("q\tc\nq\n\tc\nq\tc", InputFormat::text, question),
              ElementsAre("f:1 q", has_all("f:2: found one text", "a question and its context", "a tab")));
  EXPECT_THAT(places_of("q\t", InputFormat::text, question), ElementsAre(HasSubstr("f:1: an empty context")));
}

TEST(InputReader, CompressedFilesAreRefused) {
  for (const InputFormat format : {InputFormat::text, InputFormat::json, InputFormat::jsonl})
    EXPECT_THAT(places_of("\x1f\x8b\x08", format), ElementsAre(HasSubstr("f: it is compressed; expected")));
}

TEST(InputReader, PlacesInADocument) {
  EXPECT_THAT(places_of("[\"a,[\\\"\", {\"text\":\n\"b\"},\n\n  [], \"d\"]", InputFormat::json),
              ElementsAre(HasSubstr("f:4: found a list inside a list")));
  EXPECT_THAT(places_of("[\"a,[\\\"\", {\"text\":\n\"b\"},\n\n  \"c\", \"d\"\n]", InputFormat::json),
              ElementsAre("f:1 a,[\"", "f:1 b", "f:4 c", "f:4 d"));
  EXPECT_THAT(places_of("{\"inputs\":\n [\"a\"]}", InputFormat::json), ElementsAre("f:1: inputs[0] a"));
  EXPECT_THAT(places_of("[\n\"a\",\n4\n", InputFormat::json),
              ElementsAre(HasSubstr("f:4:1: not valid JSON")));
  EXPECT_THAT(
      places_of("\"a\"\n\"b\"\n", InputFormat::json),
      ElementsAre(AllOf(HasSubstr("f:2:3: not valid JSON"), HasSubstr("per line: InputFormat::jsonl"))));
  EXPECT_THAT(places_of("[]", InputFormat::json), ElementsAre());
}

TEST(InputReader, FormatsByExtension) {
  EXPECT_EQ(format_of("a.json"), InputFormat::json);
  EXPECT_EQ(format_of("a.jsonl"), InputFormat::jsonl);
  EXPECT_EQ(format_of("a.ndjson"), InputFormat::jsonl);
  for (const char* name : {"a.txt", "-", "a", "a.log"}) EXPECT_EQ(format_of(name), InputFormat::text);
  EXPECT_THROW(format_of("a.csv"), ConfigError);
}

}  // namespace
}  // namespace stretto::serve
