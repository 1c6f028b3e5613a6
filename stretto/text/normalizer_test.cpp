#include "stretto/text/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/golden_support.h"
#include "stretto/text/tokenizer_sections.h"
#include "stretto/text/utf8.h"

// Compares each normalizer of a tokenizer.json with Hugging Face tokenizers: see
// scripts/make_golden_normalizers.py.
namespace stretto::text {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::unique_ptr<Normalizer> normalizer_from(const json& section) {
  const json file = {{"normalizer", section}, {"model", {{"type", "Unigram"}}}};
  const json config = json::object();
  return read_normalizer(JsonField(file, "tokenizer.json:"), JsonField(config, ""), {});
}

// Like normal_form in the script.
std::string normal_form_line(const Normalizer& normalizer, std::string_view text) {
  NormalizedText normal;
  normalizer.normalize(text, 0, normal);
  std::string line;
  for (const char byte : normal.bytes) {
    const auto value = static_cast<unsigned char>(byte);
    (line += "0123456789abcdef"[value >> 4]) += "0123456789abcdef"[value & 15];
  }
  line += '\t';
  for (size_t i = 0; i < normal.bytes.size(); ++i) {
    if (!is_lead_byte(normal.bytes[i])) continue;
    const fmt::format_int character(normal.characters[i]);
    line.append(character.data(), character.size()) += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  return line + '\n';
}

Tokenizer golden_with(const std::string& file, const json& section) {
  json content = json::parse(read_file(golden_path(file)));
  content["normalizer"] = section;
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", content.dump());
  return Tokenizer::load(folder.path());
}

TEST(GoldenNormalizers, HardTexts) {
  const json file = json::parse(read_file(golden_path("normalizers.json")));
  for (const auto& [name, section] : file["normalizers"].items()) {
    const auto normalizer = normalizer_from(section);
    const Tokenizer unigram = golden_with("unigram/tokenizer.json", section);
    const Tokenizer wordpiece = golden_with("added.json", section);
    int count = 0;
    for (const json& expected : file["cases"]) {
      if (expected["normalizer"] != name) continue;
      const auto text = expected["text"].get<std::string>();
      SCOPED_TRACE(name + ": " + expected["text"].dump());
      const std::array lines = {normal_form_line(*normalizer, text), line_of(unigram.encode(text)),
                                line_of(wordpiece.encode(text))};
      for (size_t i = 0; i < lines.size(); ++i)
        EXPECT_EQ(fmt::format("{:08x}", crc32(lines[i], 0)), expected["sums"].at(i).get<std::string>())
            << lines[i];
      ++count;
    }
    EXPECT_GT(count, 50) << name;
  }
}

// Like code_point_text in the script.
void append_normalizer_text(std::string& text, char32_t value) {
  if (value >= 0xD800 && value < 0xE000) return;
  std::string c;
  append_utf8(c, value);
  text += value >= 0x33000
              ? "a" + c + " "
              : c + "\u0301 a\u0315" + c + "\u0323 e\u0301" + c + "\u1112\u1161" + c + " " + c + "A";
}

TEST(GoldenNormalizers, EveryCodePoint) {
  const json sections = json::parse(read_file(golden_path("normalizers.json")))["normalizers"];
  const auto rows = read_sums("normalizer_code_points.txt");
  ASSERT_EQ(rows.size(), 0x110000 / 1024);
  constexpr std::array names = {"NFC",          "NFD",       "NFKC",  "NFKD",
                                "StripAccents", "Lowercase", "Strip", "accents"};
  for (size_t column = 0; column < names.size(); ++column) {
    const auto normalizer = normalizer_from(sections.at(names[column]));
    for (const auto& [block, sums] : rows) {
      const auto first = static_cast<char32_t>(std::stoul(block, nullptr, 16));
      uint32_t sum = 0;
      for (char32_t start = first; start < first + 1024; start += 16) {
        std::string text;
        for (char32_t value = start; value < start + 16; ++value) append_normalizer_text(text, value);
        sum = crc32(text.empty() ? "\n" : normal_form_line(*normalizer, text), sum);
      }
      EXPECT_EQ(sum, sums.at(column)) << names[column] << ", 1024 code points from U+" << block;
    }
  }
}

std::string section_error(const json& section) {
  return message_of<DataError>([&] { normalizer_from(section); });
}

TEST(NormalizerSection, MissingAndUnavailableFieldsAreNamed) {
  EXPECT_THAT(section_error({{"type", "Nmt"}}),
              has_all("normalizer.type: \"Nmt\"", "available are BertNormalizer, Lowercase"));
  EXPECT_THAT(section_error({{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Nmt"}}}}}),
              HasSubstr("normalizer.normalizers[1].type: \"Nmt\" is not available"));
  EXPECT_THAT(section_error({{"type", "Strip"}, {"strip_left", true}}), HasSubstr("strip_right"));
  EXPECT_THAT(section_error({{"type", "Prepend"}}), HasSubstr("prepend"));
  const auto replace = [](const json& pattern) {
    return section_error({{"type", "Replace"}, {"pattern", pattern}, {"content", " "}});
  };
  EXPECT_THAT(replace({{"Regex", "("}}), has_all("normalizer.pattern.Regex: \"(\"",
                                                 "not a regular expression", "missing closing parenthesis"));
  EXPECT_THAT(replace({{"Regex", "x*"}}), HasSubstr("\"x*\" matches an empty text"));
  EXPECT_THAT(replace({{"Regex", "[a-z&&[^b]]"}}), HasSubstr("&& in a regular expression is not available"));
  EXPECT_THAT(replace({{"String", ""}}), HasSubstr("\"\" matches an empty text"));
  EXPECT_THAT(replace("x"), HasSubstr("normalizer.pattern: expected an object"));
  EXPECT_EQ(replace({{"String", "x"}}), "no error");
}

TEST(NormalizerSection, CaseIsOverriddenInABertNormalizerOnly) {
  const json file = {{"normalizer", {{"type", "Lowercase"}}}, {"model", {{"type", "WordPiece"}}}};
  const json config = json::object();
  const JsonField top(file, "tokenizer.json:");
  EXPECT_TRUE(read_normalizer(top, JsonField(config, ""), {.lowercase = true})->lowercase());
  EXPECT_THROW(read_normalizer(top, JsonField(config, ""), {.lowercase = false}), ConfigError);
}

}  // namespace
}  // namespace stretto::text
