#include <map>
#include <variant>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/text/golden_support.h"

// All columns of texts, words and pairs, with every truncation strategy and all windows, compared with those of Hugging Face
// tokenizers: see scripts/make_golden_encodings.py.
namespace stretto::text {
namespace {

using nlohmann::json;

// A text or words of a case, and the Input that views it.
class CaseInput {
 public:
  explicit CaseInput(const json& value) {
    if (value.is_array()) words_ = value.get<std::vector<std::string>>();
    if (value.is_string()) text_ = value.get<std::string>();
    split_ = value.is_array();
  }
  Input input() const { return split_ ? Input(words_) : Input(text_); }

 private:
  std::string text_;
  std::vector<std::string> words_;
  bool split_ = false;
};

EncodeOptions options_of(const json& expected) {
  static const std::map<std::string, Truncation> strategies = {
      {"longest_first", Truncation::longest_first},
      {"only_first", Truncation::only_first},
      {"only_second", Truncation::only_second},
      {"do_not_truncate", Truncation::do_not_truncate}};
  EncodeOptions options{.special_tokens = expected.value("special", true)};
  if (!expected.contains("max_length")) return options;
  options.max_length = expected["max_length"].get<size_t>();
  options.truncation = strategies.at(expected["strategy"]);
  options.stride = expected["stride"].get<size_t>();
  options.truncation_side = expected["side"] == "left" ? Side::left : Side::right;
  return options;
}

json columns(const Encoding& encoding) {
  json offsets = json::array();
  for (const Offset& offset : encoding.offsets) {
    offsets.push_back(offset.begin);
    offsets.push_back(offset.end);
  }
  return {{"ids", encoding.ids},
          {"types", encoding.type_ids},
          {"offsets", offsets},
          {"words", encoding.word_ids},
          {"sequences", encoding.sequence_ids},
          {"mask", encoding.special_tokens_mask}};
}

void expect_case(const Tokenizer& tokenizer, const json& expected) {
  const CaseInput first(expected["first"]);
  const bool pair = expected.contains("second");
  const CaseInput second(pair ? expected["second"] : json());
  const EncodeOptions options = options_of(expected);
  const auto windows = [&] {
    return pair ? tokenizer.encode_pair_windows(first.input(), second.input(), options)
                : tokenizer.encode_windows(first.input(), options);
  };
  if (expected.contains("error")) {
    EXPECT_THROW(windows(), Error);
    return;
  }
  json found = json::array();
  for (const Encoding& encoding : windows()) found.push_back(columns(encoding));
  EXPECT_EQ(found, expected["windows"]);
  const Encoding one = pair ? tokenizer.encode_pair(first.input(), second.input(), options)
                            : tokenizer.encode(first.input(), options);
  EXPECT_EQ(columns(one), expected["windows"][0]);
}

TEST(GoldenEncodings, TextsWordsAndPairs) {
  std::map<std::string, Tokenizer> tokenizers;
  for (const std::string& name : golden_tokenizers) tokenizers.emplace(name, load_golden(name));
  std::istringstream file(read_file(golden_path("encodings.jsonl")));
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const json expected = json::parse(line);
    SCOPED_TRACE(line);
    expect_case(tokenizers.at(expected["tokenizer"]), expected);
  }
  EXPECT_GT(count, 400);
}

TEST(Windows, AStrideThatFillsAWindowIsRefused) {
  const Tokenizer tokenizer = load_golden("uncased");
  try {
    tokenizer.encode_windows("hello hello hello hello", {.max_length = 4, .stride = 2});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "tokenizer: a stride of 2 is not smaller than the 2 tokens of a text that a window holds");
  }
}

TEST(Windows, ATextThatIsTooShortToGiveWayIsRefused) {
  const Tokenizer tokenizer = load_golden("uncased");
  const auto error_of = [&](Truncation truncation) -> std::string {
    try {
      tokenizer.encode_pair("hello hello hello hello", "the map",
                            {.max_length = 5, .truncation = truncation});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(
      error_of(Truncation::only_second),
      "tokenizer: the second text has 2 tokens, and 4 would have to be cut from it to keep 2 in all; truncate the longest text first, or raise the maximum length");
  EXPECT_EQ(error_of(Truncation::longest_first), "no error");
}

}  // namespace
}  // namespace stretto::text
