#include "stretto/text/id_decoder.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/utf8.h"
#include "stretto/text/byte_level.h"
#include "stretto/text/golden_support.h"

namespace stretto::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The text of byte-level tokens, all at once.
std::string text_of_bytes(const std::vector<std::string_view>& tokens) {
  std::string bytes, repaired;
  for (const std::string_view token : tokens) bytes += bytes_of_token(token).value_or(std::string(token));
  return std::string(replace_invalid_utf8(bytes, repaired));
}

// The text of Llama 2's tokens, all at once.
std::string text_of_pieces(const std::vector<std::string_view>& tokens) {
  constexpr std::string_view space = "\u2581";
  std::string text, run;
  const auto end_run = [&] {
    for (size_t i = 0; !is_utf8(run) && i < run.size(); ++i) text += "\uFFFD";
    if (is_utf8(run)) text += run;
    run.clear();
  };
  for (const std::string_view token : tokens) {
    if (token.size() == 6 && token.starts_with("<0x")) {
      run.push_back(static_cast<char>(std::stoi(std::string(token.substr(3, 2)), nullptr, 16)));
      continue;
    }
    end_run();
    std::string part(token);
    for (size_t at; (at = part.find(space)) != std::string::npos;) part.replace(at, space.size(), " ");
    text += part;
  }
  end_run();
  return text.starts_with(' ') ? text.substr(1) : text;
}

// Expects that the texts of the ids, joined, are the decoded ids, and that each is whole characters.
void expect_decoded(const Tokenizer& tokenizer, std::span<const int32_t> ids, bool skip_special_tokens) {
  const DecodeOptions options{skip_special_tokens};
  IdDecoder decoder(tokenizer, options);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = decoder.add(id);
    EXPECT_TRUE(is_utf8(piece)) << piece;
    text += piece;
  }
  EXPECT_EQ(text + decoder.finish(), tokenizer.decode(ids, options));
}

// Ids of bytes, of special tokens and of no token are as frequent as all others.
std::vector<int32_t> hostile_ids(const Tokenizer& tokenizer, std::mt19937_64& random) {
  const auto below = [&](int32_t most) {
    return static_cast<int32_t>(random() % static_cast<uint64_t>(most));
  };
  const int32_t size = tokenizer.vocab_size();
  std::vector<int32_t> ids(60);
  for (int32_t& id : ids) id = below(2) == 0 ? below(std::min(size, 300)) : below(size + 2) - 1;
  return ids;
}

TEST(IdDecoder, TheTextsOfIdsAreTheTextOfAll) {
  std::vector<std::string> names(golden_tokenizers.begin(), golden_tokenizers.end());
  names.insert(names.end(), golden_families.begin(), golden_families.end());
  names.insert(names.end(), golden_decoders.begin(), golden_decoders.end());
  std::mt19937_64 random(5);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = load_golden(name);
    for (const char* text :
         {"", " ", "  two", "Zürich, 東京都渋谷区 and 🙂🙃 don't , do they ? \n", "🙂🙃🙂",
          "a\uFFFDb", "\x80\xE6\x9D x \xF0\x9F"})
      expect_decoded(tokenizer, tokenizer.encode(text).ids, true);
    for (int round = 0; round < 50; ++round)
      expect_decoded(tokenizer, hostile_ids(tokenizer, random), round % 2 == 0);
  }
}

TEST(IdDecoder, BytesThatAreNoCharactersAreReplacedAsInTheWholeText) {
  std::mt19937_64 random(6);
  using TextOf = std::string (*)(const std::vector<std::string_view>&);
  for (const auto& [name, text_of] : {std::pair<const char*, TextOf>("gpt2", text_of_bytes),
                                      {"llama3", text_of_bytes},
                                      {"qwen2", text_of_bytes},
                                      {"llama2", text_of_pieces}}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = load_golden(name);
    for (int round = 0; round < 100; ++round) {
      const std::vector<int32_t> ids = hostile_ids(tokenizer, random);
      std::vector<std::string_view> tokens;
      for (const int32_t id : ids)
        if (const auto token = tokenizer.token(id)) tokens.push_back(*token);
      EXPECT_EQ(tokenizer.decode(ids, {.skip_special_tokens = false}), text_of(tokens));
    }
  }
}

TEST(IdDecoder, OnlyWhatMayChangeIsKeptBack) {
  const auto text_of = [](IdDecoder& decoder, std::span<const int32_t> ids) {
    std::string text;
    for (const int32_t id : ids) text += decoder.add(id);
    return text;
  };
  for (const char* name : {"gpt2", "llama2"}) {
    const Tokenizer tokenizer = load_golden(name);
    IdDecoder decoder(tokenizer), half(tokenizer);
    const auto ids = tokenizer.encode("one 🙂🙃 two").ids, smile = tokenizer.encode("🙂").ids;
    EXPECT_EQ(text_of(decoder, ids), tokenizer.decode(ids)) << name;
    EXPECT_EQ(decoder.finish(), "") << name;
    const auto begun = std::span(smile).first(smile.size() - 1);
    EXPECT_THAT(text_of(half, begun), Not(HasSubstr("\uFFFD"))) << name;
    EXPECT_THAT(half.finish(), StartsWith("\uFFFD")) << name;
  }
}

TEST(DecoderStream, StepsAfterFuseReadTheWholeText) {
  using Kind = DecoderStep::Kind;
  const std::vector<DecoderStep> whole = {{.kind = Kind::fuse},
                                          {.kind = Kind::replace, .from = "ab", .to = "c"},
                                          {.kind = Kind::strip, .from = " ", .start = 1, .stop = 1}},
                                 start = {{.kind = Kind::fuse},
                                          {.kind = Kind::strip, .from = " ", .start = 2}};
  const auto pieces = [](const std::vector<DecoderStep>& steps, const std::vector<std::string_view>& tokens) {
    const Decoder decoder{.kind = Decoder::Kind::steps, .steps = steps};
    DecoderStream stream(decoder);
    std::vector<std::string> texts;
    for (const std::string_view token : tokens) texts.push_back(stream.add(token));
    texts.push_back(stream.finish());
    return texts;
  };
  EXPECT_THAT(pieces(whole, {" a", "b ", " "}), ElementsAre("", "", "", "c "));
  EXPECT_THAT(pieces(start, {" ", "", " ", " x", " "}), ElementsAre("", "", "", " x", " ", ""));
  EXPECT_THAT(pieces(start, {" ", "x", " "}), ElementsAre("", "x", " ", ""));
}

}  // namespace
}  // namespace stretto::text
