#include "stretto/text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/text/cl100k.h"
#include "stretto/text/golden_support.h"
#include "stretto/text/tokenizer_files.h"

// BPE of characters, its decoder, and the pre-tokenizer of Llama 3, in cases that the golden files do not
// contain.
namespace stretto::text {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer tokenizer_of(const json& file) {
  return Tokenizer(parse_tokenizer_json(file, "tokenizer.json", json::object(), "tokenizer_config.json", {}));
}

std::string refusal(const json& file) {
  return message_of<DataError>([&] { tokenizer_of(file); });
}

// Words of "a" and "b", and bytes.
json small_character_bpe(bool bytes) {
  json vocabulary = {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}};
  for (int byte = 0; bytes && byte < 256; ++byte) vocabulary[fmt::format("<0x{:02X}>", byte)] = 4 + byte;
  return {{"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"byte_fallback", true},
            {"fuse_unk", true},
            {"merges", json::array({{"a", "b"}})},
            {"vocab", vocabulary}}},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", {{"String", "b"}}}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 1}}}}}}};
}

TEST(CharacterBpe, UnknownCharactersAreTheirBytes) {
  const Encoding encoding = tokenizer_of(small_character_bpe(true)).encode("ab\u00e9a");
  EXPECT_THAT(encoding.ids, ElementsAre(3, 4 + 0xC3, 4 + 0xA9, 1));
  EXPECT_THAT(encoding.offsets, ElementsAre(Offset{0, 2}, Offset{2, 3}, Offset{2, 3}, Offset{3, 4}));
}

TEST(CharacterBpe, WithoutTokensOfBytesCharactersAreUnknown) {
  json file = small_character_bpe(false);
  EXPECT_THAT(tokenizer_of(file).encode("ab\u00e9xa").ids, ElementsAre(3, 0, 1));
  file["model"]["fuse_unk"] = false;
  EXPECT_THAT(tokenizer_of(file).encode("ab\u00e9xa").ids, ElementsAre(3, 0, 0, 1));
  file["model"].erase("unk_token");
  EXPECT_THAT(tokenizer_of(file).encode("ab\u00e9xa").ids, ElementsAre(3, 1));
}

TEST(CharacterBpe, IncompleteByteTokensAreRefused) {
  json file = small_character_bpe(true);
  file["model"]["vocab"].erase("<0x41>");
  EXPECT_THAT(refusal(file), HasSubstr("the vocabulary lacks 1 of the 256 tokens <0x00> to <0xFF>"));
}

TEST(Decoder, StepsAreAppliedInOrder) {
  const Tokenizer tokenizer = tokenizer_of(small_character_bpe(true));
  const auto decoded = [&](const std::vector<int32_t>& ids) { return tokenizer.decode(ids); };
  EXPECT_EQ(decoded({2, 2, 1, 4 + 0xC3, 4 + 0xA9, 1, 2}), " a\u00e9a");
  EXPECT_EQ(decoded({1, 4 + 0xC3, 1}), "a\ufffda") << "half a character";
  EXPECT_EQ(decoded({1, 4 + 0xE4, 4 + 0xB8}), "a\ufffd\ufffd") << "one per byte";
  EXPECT_EQ(decoded({}), "");
  json file = small_character_bpe(true);
  file["decoder"]["decoders"][0]["type"] = "CTC";
  const Tokenizer other = tokenizer_of(file);
  EXPECT_THAT(message_of<DataError>([&] { (void)other.decode(std::vector<int32_t>{1}); }),
              HasSubstr("decoder.decoders[0].type: \"CTC\""));
}

TEST(Decoder, AStripOfAnythingButACharacterIsRefused) {
  json file = small_character_bpe(true);
  file["decoder"]["decoders"][3]["content"] = "";
  EXPECT_THAT(refusal(file), HasSubstr("decoder.decoders[3].content: expected one character, found \"\""));
}

TEST(Split, UnsupportedExpressionsAreRefused) {
  const json good = json::parse(read_file(golden_path("llama3/tokenizer.json")));
  EXPECT_EQ(refusal(good), "no error");
  const auto with = [&](const char* pointer, const json& value) {
    json file = good;
    file[json::json_pointer(pointer)] = value;
    return refusal(file);
  };
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+"),
              HasSubstr("pre_tokenizer.pretokenizers[0].pattern.Regex: \"\\w+\" is not available"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), HasSubstr("\"Removed\""));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/invert", true), HasSubstr("without invert"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/1/use_regex", true), HasSubstr("behind a Split"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), HasSubstr("behind a Split"));
  EXPECT_THAT(with("/model/byte_fallback", true), HasSubstr("model.byte_fallback"));
}

// Compares with the words that the regular expression in tokenizers gives.
TEST(Cl100k, SplitsLikeItsRegularExpression) {
  const auto words = [](const std::string& text) {
    NormalizedText normalized, scratch;
    NoNormalizer().normalize(text, 0, normalized);
    std::vector<WordRange> ranges;
    Cl100kPreTokenizer(3).split(normalized, scratch, ranges);
    std::vector<std::string> parts;
    for (const auto& [begin, end] : ranges) parts.push_back(text.substr(begin, end - begin));
    return parts;
  };
  EXPECT_THAT(words("x'\u017fa x'Sa x'sS"),
              ElementsAre("x", "'\u017f", "a", " x", "'S", "a", " x", "'s", "S"));
  EXPECT_THAT(words("we'REx we'Vex I'Lla I'le"),
              ElementsAre("we", "'RE", "x", " we", "'Ve", "x", " I", "'Ll", "a", " I", "'le"));
  EXPECT_THAT(words("'tis 'T"), ElementsAre("'t", "is", " '", "T"));
  EXPECT_THAT(words("12345 1a"), ElementsAre("123", "45", " ", "1", "a"));
  EXPECT_THAT(words("a \n\n b\r\n\t c"), ElementsAre("a", " \n\n", " b", "\r\n", "\t", " c"));
  EXPECT_THAT(words("  \n"), ElementsAre("  \n"));
  EXPECT_THAT(words("a!!\n\n?x  !"), ElementsAre("a", "!!\n\n", "?x", " ", " !"));
  EXPECT_THAT(words("\u00a0a \u2028b"), ElementsAre("\u00a0a", " ", "\u2028b"));
}

// A Split with GPT-2's own regular expression splits like ByteLevel.
TEST(Split, KnowsTheExpressionOfGpt2) {
  json file = json::parse(read_file(golden_path("gpt2/tokenizer.json")));
  file["pre_tokenizer"]["add_prefix_space"] = false;
  const Tokenizer plain = tokenizer_of(file);
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  for (const char* expression :
       {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
        R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"}) {
    file["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}}, bytes}}};
    const std::string text = "it's  we'LL 1234 a\n\n b!!\n";
    EXPECT_EQ(tokenizer_of(file).encode(text).ids, plain.encode(text).ids) << expression;
  }
}

}  // namespace
}  // namespace stretto::text
