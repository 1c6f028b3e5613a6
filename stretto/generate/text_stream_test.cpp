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

// Expects that the pieces of the tokens are whole characters and, joined, the beginning of their text, of
// which `kept` bytes at most are missing, wherever the prompt ends.
void expect_text_in_pieces(const text::Tokenizer& tokenizer, std::span<const int32_t> ids, size_t kept,
                           const std::vector<std::string>& stop = {}) {
  for (size_t prompt = 0; prompt < ids.size(); ++prompt) {
    TextStream stream(tokenizer, ids.first(prompt), stop);
    std::string shown;
    for (const int32_t id : ids.subspan(prompt)) {
      const std::string piece = stream.add(id);
      EXPECT_TRUE(is_utf8(piece)) << piece;
      shown += piece;
    }
    const std::string whole = stream.text(ids.subspan(prompt));
    EXPECT_TRUE(whole.starts_with(shown)) << prompt << ": \"" << shown << "\" of \"" << whole << "\"";
    EXPECT_LE(whole.size(), shown.size() + kept) << prompt << ": \"" << shown << "\" of \"" << whole << "\"";
  }
}

TEST(TextStream, PiecesAreTheTextOfAllTokens) {
  const std::string text = "Zürich, 東京 and 🙂🙃 are naïve words";
  for (const char* name : {"gpt2", "llama2", "llama3", "qwen2", "unigram", "word_level"}) {
    SCOPED_TRACE(name);
    const auto tokenizer = text::Tokenizer::load(tokenizers / name);
    const auto ids = tokenizer.encode(text, {.special_tokens = false}).ids;
    expect_text_in_pieces(tokenizer, ids, 0);
    expect_text_in_pieces(tokenizer, ids, std::string_view("words").size(), {"absent", "words of"});
    std::mt19937_64 random(7);
    for (int round = 0; round < 20; ++round) {  // mostly not the ids of a text
      std::vector<int32_t> tokens(24);
      for (int32_t& token : tokens) {
        const int32_t most = round % 2 == 0 ? tokenizer.vocab_size() : std::min(tokenizer.vocab_size(), 300);
        token = static_cast<int32_t>(random() % static_cast<uint64_t>(most));
      }
      constexpr size_t all = 1000;
      expect_text_in_pieces(tokenizer, tokens, all, {"e", "\xEF\xBF\xBD\xEF\xBF\xBD "});
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      expect_text_in_pieces(tokenizer, tokens, 0);
    }
  }
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
  TextStream pieces(loaded, prompt, {"ee fo", "zebra"});
  std::string shown;
  for (const int32_t id : added) shown += pieces.add(id);
  EXPECT_EQ(shown, stream.text(added)) << "a part of a stop string is shown";
  EXPECT_FALSE(TextStream(loaded, prompt, {"zebra"}).is_stopped(added));
}

}  // namespace
}  // namespace stretto::generate
