#include "stretto/token_corpus/json_text.h"

#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace stretto::token_corpus {
namespace {

std::optional<std::string> find(std::string_view json) {
  std::string buffer;
  const auto found = find_json_text(json, "text", buffer);
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

TEST(JsonText, IsFoundAmongValuesOfAllKinds) {
  EXPECT_EQ(find(R"({"text": "a"})"), "a");
  EXPECT_EQ(
      find(
          R"( {"id":-12.50, "l" : [1,[],{"text":"x"},null] ,"o":{"a":{}}, "t":true,"f":false,"text":"a \"b\"\n\u00e9\uD83D\uDE00\/" , "z":0} )"),
      "a \"b\"\n\u00e9\U0001F600/");
  EXPECT_EQ(find(R"({"te\u0078t": ""})"), "");
}

TEST(JsonText, IsNotFoundWhereAParserIsNeeded) {
  for (const char* json : {"",
                           "{",
                           "{}",
                           "[]",
                           "\"text\"",
                           R"({"text": 1})",
                           R"({"text": null})",
                           R"({"other": "a"})",
                           R"({"text": "a", "text": "b"})",
                           R"({"text": "a"} x)",
                           R"({"text": "a",})",
                           R"({"text": "\ud800"})",
                           R"({"text": "\udc00"})",
                           R"({"text": "\x"})",
                           R"({"text": "a)",
                           R"({"a": 01, "text": "a"})",
                           R"({"a": 1e999, "text": "a"})",
                           R"({"a": [1,], "text": "a"})",
                           "{\"text\": \"a\nb\"}",
                           "{\"text\": \"\xFF\"}"})
    EXPECT_EQ(find(json), std::nullopt) << json;
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  EXPECT_EQ(find("{\"a\": " + deep + ", \"text\": \"a\"}"), std::nullopt);
}

// A text that is found in damaged JSON is the one that a parser finds.
TEST(JsonText, AgreesWithAParserOnDamagedJson) {
  const std::string whole =
      R"({"id": -12.5, "tags": ["a", {"b": [true, false, null, 0]}], "text": "One \"two\"\n\u00e9 \ud83d\ude00 caf)"
      "\u00e9"
      R"(", "last": {}})";
  std::mt19937 random(1);
  const std::string bytes = "\"\\{}[],:ux0e1 -.\n\xC3t";
  int found = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string json = whole;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % json.size();
      switch (random() % 3) {
        case 0:
          json[at] = bytes[random() % bytes.size()];
          break;
        case 1:
          json.erase(at, 1 + random() % 4);
          break;
        default:
          json.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    const auto text = find(json);
    if (!text) continue;
    ++found;
    const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(parsed.is_object() && parsed.contains("text")) << json;
    ASSERT_EQ(parsed.at("text"), *text) << json;
  }
  EXPECT_GT(found, 20'000);
}

}  // namespace
}  // namespace stretto::token_corpus
