#include "stretto/text/id_encoder.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/text/byte_level.h"
#include "stretto/text/golden_support.h"
#include "stretto/text/parts.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// Returns a text of characters of many kinds in random order, with white space of various lengths.
std::string random_text(std::mt19937& random, size_t parts) {
  static const std::vector<std::string> fragments = {
      "the",        "The", " ",      "  ",   "\n",     "\t",        "\r\n",   "don't",         "'s",
      "'",          "1",   "2023",   "!",    "...",    "caf\u00e9", "\u0301", "\u4e2d",        "\u00a0",
      "\U0001F600", "<",   "<s>",    "</s>", "<mask>", "[MASK]",    "<word>", "<|endoftext|>", "New York",
      "\u2581",     "x",   "\u0130", "\x01", "\u2003"};
  std::string text;
  for (size_t i = 0; i < parts; ++i) {
    text += fragments[random() % fragments.size()];
    if (random() % 3 == 0) text += ' ';
  }
  return text;
}

std::vector<std::pair<std::string, Tokenizer>> tokenizers_of_families() {
  std::vector<std::pair<std::string, Tokenizer>> all;
  for (const std::string& name : golden_tokenizers) all.emplace_back(name, load_golden(name));
  for (const std::string& name : golden_families) all.emplace_back(name, load_golden(name));
  return all;
}

std::vector<std::pair<std::string, Tokenizer>> all_tokenizers() {
  auto all = tokenizers_of_families();
  for (const std::string& name : golden_decoders) all.emplace_back(name, load_golden(name));
  return all;
}

TEST(IdEncoder, GivesTheIdsOfEncode) {
  std::mt19937 random(1);
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    IdEncoder encoder(tokenizer);
    for (int i = 0; i < 2000; ++i) {
      const std::string text = random_text(random, random() % 40);
      std::vector<int32_t> ids;
      encoder.append(text, ids);
      ASSERT_EQ(ids, tokenizer.encode(text, {.special_tokens = false}).ids) << name << ": " << text;
    }
  }
}

TEST(IdEncoder, GivesTheIdsOfEncodeForEveryCodePoint) {
  for (const auto& [name, tokenizer] : tokenizers_of_families()) {
    IdEncoder encoder(tokenizer);
    for (char32_t first = 0; first < 0x33000; first += 64) {
      std::string text;
      for (char32_t c = first; c < first + 64; ++c) {
        if (c >= 0xD800 && c < 0xE000) continue;
        text += " a";
        append_utf8(text, c);
        text += "b ";
        append_utf8(text, c);
      }
      std::vector<int32_t> ids;
      encoder.append(text, ids);
      ASSERT_EQ(ids, tokenizer.encode(text, {.special_tokens = false}).ids)
          << name << ", U+" << static_cast<uint32_t>(first);
    }
  }
}

// If a text may be cut according to reads_in_parts(), its ids are those of its parts.
TEST(IdEncoder, TextsCutInFrontOfASpaceHaveTheSameIds) {
  std::mt19937 random(2);
  std::vector<std::string> in_parts;
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    if (!tokenizer.reads_in_parts()) continue;
    in_parts.push_back(name);
    IdEncoder encoder(tokenizer);
    for (int i = 0; i < 3000; ++i) {
      const std::string text = random_text(random, 1 + random() % 30);
      std::vector<int32_t> whole, parts;
      encoder.append(text, whole);
      size_t begin = 0;
      for (size_t at = 1; at < text.size(); ++at) {
        if (!may_cut(text, at)) continue;
        encoder.append(std::string_view(text).substr(begin, at - begin), parts);
        begin = at;
      }
      encoder.append(std::string_view(text).substr(begin), parts);
      ASSERT_EQ(parts, whole) << name << ": " << text;
    }
  }
  EXPECT_THAT(in_parts, testing::ElementsAre("cased", "uncased", "options", "roberta", "llama3", "qwen2"));
}

TEST(Parts, TheLastCutIsBeforeASpaceThatFollowsAnotherCharacter) {
  EXPECT_EQ(last_cut("one two three"), 7);
  EXPECT_EQ(last_cut("one \n two \n \t "), 9);
  EXPECT_EQ(last_cut("caf\u00e9 \u2003 "), 5);
  EXPECT_EQ(last_cut("a\xE2\x80 "), 3);
  for (const char* none : {"", "one", " one", "\n one", "\u2003 "}) EXPECT_EQ(last_cut(none), 0) << none;
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = random_text(random, random() % 20);
    size_t last = 0;
    for (size_t at = 1; at < text.size(); ++at) {
      if (may_cut(text, at)) last = at;
    }
    ASSERT_EQ(last_cut(text), last) << text;
  }
}

TEST(IdEncoder, ByteLevelKeepsBytesThatAreNotUtf8) {
  const Tokenizer tokenizer = load_golden("gpt2");
  ASSERT_TRUE(tokenizer.reads_any_bytes());
  const std::string text = " caf\xC3\xA9 \xFF\xFE the\xC3 map\xE2\x82";
  std::vector<int32_t> ids;
  IdEncoder(tokenizer).append(text, ids);
  std::string bytes;
  for (const int32_t id : ids) bytes += bytes_of_token(*tokenizer.token(id)).value();
  EXPECT_EQ(bytes, text);
  EXPECT_FALSE(load_golden("uncased").reads_any_bytes());
}

TEST(IdEncoder, LongWordsAndWordsOfZerosAreDistinguished) {
  const Tokenizer tokenizer = load_golden("gpt2");
  IdEncoder encoder(tokenizer);
  for (const size_t size : {1, 2, 22, 23, 24, 40, 23, 1}) {
    const std::string zeros(size, '\0'), letters(size, 'q');
    for (const std::string& text : {zeros, letters, zeros}) {
      std::vector<int32_t> ids;
      encoder.append(text, ids);
      EXPECT_EQ(ids, tokenizer.encode(text).ids) << size;
    }
  }
}

TEST(Tokenizer, ReportsTemplateTokensAndTheEndOfADocument) {
  const TemplateIds roberta = load_golden("roberta").template_ids();
  EXPECT_THAT(roberta.before, testing::SizeIs(1));
  EXPECT_THAT(roberta.after, testing::SizeIs(1));
  const TemplateIds gpt2 = load_golden("gpt2").template_ids();
  EXPECT_TRUE(gpt2.before.empty() && gpt2.after.empty());
  EXPECT_EQ(load_golden("unigram").eos_id(), std::nullopt);
}

}  // namespace
}  // namespace stretto::text
