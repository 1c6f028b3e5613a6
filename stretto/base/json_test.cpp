#include "stretto/base/json.h"

#include <gtest/gtest.h>

#include "stretto/base/error.h"

namespace stretto {
namespace {

TEST(Json, ErrorsCarryThePlace) {
  try {
    parse_json("{\n \"a\": 1,\n \"b\": x}", "file.json");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("file.json:3:7: not valid JSON", 0), 0u) << error.what();
  }
}

TEST(Json, NumbersBeyondDoubleAreRefused) { EXPECT_THROW(parse_json("[1e999]", "big"), DataError); }

TEST(Json, PlacesCountFromTheGivenLine) {
  try {
    parse_json("{\"a\": }", "lines.jsonl", 64, 7);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("lines.jsonl:7:7: ", 0), 0u) << error.what();
  }
}

TEST(Json, DeepNestingIsRefusedBeforeParsing) {
  EXPECT_THROW(parse_json(std::string(1'000'000, '['), "deep"), DataError);
  EXPECT_EQ(parse_json("[\"[[[[\"]", "flat", 1)[0], "[[[[");
}

}  // namespace
}  // namespace stretto
