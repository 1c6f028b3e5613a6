#include "stretto/generate/text_stream.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
