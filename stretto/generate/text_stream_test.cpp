#include "stretto/generate/text_stream.h"

#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"

namespace stretto::generate {
namespace {

const std::filesystem::path tokenizers = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/tokenizer";

// Expects that the shown text is a prefix of the whole text and ends with a whole character, however the
// tokens arrive. A prompt is a text, so it consists of whole characters.
void expect_whole_characters(const std::string& tokenizer, const std::string& text) {
  const auto loaded = text::Tokenizer::load(tokenizers / tokenizer);
  const auto ids = loaded.encode(text, {.special_tokens = false}).ids;
  const std::string whole = loaded.decode(ids);
  for (size_t prompt = 1; prompt < ids.size(); ++prompt) {
    const std::span all(ids);
    if (loaded.decode(all.first(prompt)).ends_with("\xEF\xBF\xBD")) continue;
    const TextStream stream(loaded, all.first(prompt), {});
    const std::string expected = stream.text(all.subspan(prompt));
    std::string shown;
    for (size_t end = prompt; end <= ids.size(); ++end) {
      const std::string settled = stream.settled(all.subspan(prompt, end - prompt));
      if (settled.size() <= shown.size()) {
        EXPECT_TRUE(shown.starts_with(settled)) << tokenizer;
        continue;
      }
      EXPECT_TRUE(settled.starts_with(shown))
          << tokenizer << ": \"" << settled << "\" after \"" << shown << "\"";
      EXPECT_EQ(settled.find("\xEF\xBF\xBD"), std::string::npos) << tokenizer << " " << prompt << " " << end;
      EXPECT_TRUE(is_utf8(settled));
      shown = settled;
    }
    EXPECT_TRUE(expected.starts_with(shown));
    if (prompt == 1) {
      EXPECT_TRUE(whole.ends_with(expected));
    }
  }
}

TEST(TextStream, CharactersAreWhole) {
  for (const char* tokenizer : {"gpt2", "llama2", "llama3", "qwen2"})
    expect_whole_characters(tokenizer, "Zürich, 東京 and 🙂🙃 are naïve words");
}

// Whether the stream stops, with the token that completes the stop string in the whole text.
bool stops_like_the_whole_text(const text::Tokenizer& tokenizer, std::span<const int32_t> tokens,
                               const std::string& stop) {
  const TextStream whole(tokenizer, tokens.first(1), {}),
      stream(tokenizer, tokens.first(1), {stop, "absent"});
  for (size_t count = 1; count < tokens.size(); ++count) {
    const auto added = tokens.subspan(1, count);
    const bool contains = whole.text(added).find(stop) != std::string::npos;
    if (stream.is_stopped(added) != contains) return false;
    if (contains) return true;
  }
  return false;
}

// The ids, with seven tokens without text after each.
std::vector<int32_t> with_empty_tokens(const text::Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> all, empty = {0};
  while (!tokenizer.decode(empty).empty() && empty[0] < tokenizer.vocab_size()) ++empty[0];
  for (const int32_t id : ids) {
    all.push_back(id);
    all.insert(all.end(), 7, empty[0]);
  }
  return all;
}

TEST(TextStream, StopStringsAreFoundInTheLastTokens) {
  std::string lines;
  for (int line = 0; line < 10; ++line)
    lines += fmt::format("line {}: Zürich, 東京都渋谷区 and 🙂🙃🙂 don't {}\n", line,
                         std::string(line, ' '));
  for (const char* name : {"gpt2", "llama2", "llama3", "qwen2"}) {
    SCOPED_TRACE(name);
    const auto tokenizer = text::Tokenizer::load(tokenizers / name);
    const auto ids = tokenizer.encode(lines, {.special_tokens = false}).ids;
    for (const char* stop :
         {"9:", "都渋谷区 and 🙂🙃🙂 don't       ", "\nline 8", "🙃🙂 don't    \n"})
      EXPECT_TRUE(stops_like_the_whole_text(tokenizer, ids, stop)) << stop;
    const auto sparse = with_empty_tokens(tokenizer, std::span(ids).first(80));
    EXPECT_TRUE(stops_like_the_whole_text(tokenizer, sparse, "渋谷区 and 🙂🙃"));
    std::mt19937_64 random(3);
    std::vector<int32_t> tokens(200);  // mostly not the ids of a text: invalid bytes, special tokens
    for (int32_t& token : tokens)
      token = static_cast<int32_t>(random() % static_cast<uint64_t>(tokenizer.vocab_size()));
    const std::string decoded = tokenizer.decode(std::span(tokens).subspan(1));
    const auto words = split(decoded, ' ');
    for (size_t i = 0; i < words.size(); i += words.size() / 10 + 1) {
      const std::string word(words[i]);
      if (word.empty() || word.find("\xEF\xBF\xBD") != std::string::npos) continue;
      EXPECT_TRUE(stops_like_the_whole_text(tokenizer, tokens, word)) << word;
    }
    EXPECT_FALSE(
        TextStream(tokenizer, std::span(ids).first(1), {"line 1"}).is_stopped(std::span(ids).subspan(1)))
        << "more than the last tokens is decoded";
  }
}

TEST(TextStream, TextsEndBeforeStopStrings) {
  const auto loaded = text::Tokenizer::load(tokenizers / "gpt2");
  const auto ids = loaded.encode("one two three four", {.special_tokens = false}).ids;
  const std::vector<int32_t> prompt = {ids[0]};
  const std::span added = std::span(ids).subspan(1);
  const std::string whole = TextStream(loaded, prompt, {}).text(added);
  const TextStream stream(loaded, prompt, {"ee fo", "zebra"});
  EXPECT_TRUE(stream.is_stopped(added));
  EXPECT_EQ(stream.text(added), whole.substr(0, whole.find("ee fo")));
  std::string shown;
  for (size_t count = 0; count <= added.size(); ++count) {
    shown = stream.settled(added.first(count));
    EXPECT_TRUE(stream.text(added).starts_with(shown))
        << "\"" << shown << "\" holds a part of the stop string";
  }
  EXPECT_EQ(shown, stream.text(added));
  EXPECT_FALSE(TextStream(loaded, prompt, {"zebra"}).is_stopped(added));
}

}  // namespace
}  // namespace stretto::generate
