#include "stretto/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Json, ErrorsCarryThePlace) {
  EXPECT_THAT(message_of<DataError>([] { parse_json("{\n \"a\": 1,\n \"b\": x}", "file.json"); }),
              StartsWith("file.json:3:7: not valid JSON"));
}

TEST(Json, ErrorsDoNotQuoteTheFile) {
  const std::string surrogate = "[\"\\ud800: x\"]", no_utf8 = "[\"a\xff\"]";
  for (const std::string& text : {surrogate, no_utf8, "[\"" + std::string(1'000'000, 'x')}) {
    const std::string message = message_of<DataError>([&] { parse_json(text, "f"); });
    EXPECT_THAT(message, HasSubstr("syntax error while parsing value - invalid string"));
    EXPECT_LT(message.size(), 200u);
    EXPECT_EQ(message.find('\xff'), std::string::npos);
  }
}

TEST(Json, NumbersBeyondDoubleAreRefused) { EXPECT_THROW(parse_json("[1e999]", "big"), DataError); }

TEST(Json, PlacesCountFromTheGivenLine) {
  EXPECT_THAT(message_of<DataError>([] { parse_json("{\"a\": }", "lines.jsonl", 64, 7); }),
              StartsWith("lines.jsonl:7:7: "));
}

TEST(Json, DeepNestingIsRefusedBeforeParsing) {
  EXPECT_THROW(parse_json(std::string(1'000'000, '['), "deep"), DataError);
  EXPECT_EQ(parse_json("[\"[[[[\"]", "flat", 1)[0], "[[[[");
}

TEST(Json, WholeNumbersAreNotConverted) {
  EXPECT_EQ(whole_number(-3), -3);
  EXPECT_EQ(whole_number(uint64_t{INT64_MAX}), INT64_MAX);
  EXPECT_EQ(whole_number(UINT64_MAX), std::nullopt);
  EXPECT_EQ(whole_number(1.0), std::nullopt);
  EXPECT_EQ(whole_number("1"), std::nullopt);
}

TEST(Json, MembersOfAnotherTypeCountAsMissing) {
  const nlohmann::json object = {{"n", 0.5}, {"t", "x"}, {"list", {1}}};
  EXPECT_EQ(number_in(object, "n"), 0.5);
  EXPECT_EQ(number_in(object, "t"), std::nullopt);
  EXPECT_EQ(number_in(object, "none"), std::nullopt);
  EXPECT_EQ(number_in(nlohmann::json(), "n"), std::nullopt);
  EXPECT_EQ(text_in(object, "t"), "x");
  EXPECT_EQ(text_in(object, "n"), "");
  EXPECT_EQ(text_in(nlohmann::json::array(), "t"), "");
}

TEST(Json, LinesThatAreNotObjectsAreSkipped) {
  std::vector<std::string> lines, names;
  each_json_line("{\"b\":1,\"a\":2}\nnot json\n[1]\n\n{\"c\":3}\n{\"d\":",
                 [&](auto line, const auto& object) {
                   lines.emplace_back(line);
                   for (const auto& [name, value] : object.items()) names.push_back(name);
                 });
  EXPECT_THAT(lines, testing::ElementsAre("{\"b\":1,\"a\":2}", "{\"c\":3}"));
  EXPECT_THAT(names, testing::ElementsAre("b", "a", "c"));
}

TEST(Json, SizeIsBounded) {
  EXPECT_THAT(message_of<DataError>([] { parse_json(std::string((size_t{256} << 20) + 1, ' '), "a.json"); }),
              testing::HasSubstr("a.json: 256 MiB of JSON; expected at most"));
}

}  // namespace
}  // namespace stretto
