#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/token_corpus/corpus_fixture.h"

// A text file or a corpus as data.
namespace stretto::token_corpus {
namespace {

class OpenCorpus : public CorpusTest {};

TEST_F(OpenCorpus, ATextFileIsTokenizedIntoTheCacheOnce) {
  const fs::path file = write("text", "a film");
  const auto open = [&](const TokenizeOptions& options = {}) {
    logged_.clear();
    return open_corpus(file, roberta(), golden("roberta"), path("cache"), options);
  };
  const auto first = open();
  EXPECT_EQ(first->tokens(), std::ssize(roberta().encode("a film").ids));
  EXPECT_EQ(open()->folder(), first->folder());
  EXPECT_THAT(logged_, testing::HasSubstr("complete already"));
  EXPECT_NE(open({.special_tokens = false})->folder(), first->folder());
  write("text", "b film");
  EXPECT_NE(open()->fingerprint(), first->fingerprint());
}

TEST_F(OpenCorpus, ARefusedTextLeavesNothingInTheCache) {
  const fs::path cache = path("run/cache");
  const auto refusal = [&](const fs::path& file, TokenizeOptions options) {
    try {
      open_corpus(file, roberta(), golden("roberta"), cache, std::move(options));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const fs::path blank = write("text", "\n\n"),
                 broken = write("text.jsonl", "{\"text\": \"a film\"}\n{\"txt\": 1}\n");
  EXPECT_THAT(refusal(blank, {.documents = {.rule = DocumentRule::line}}),
              has_all("text", "there is no text in it"));
  EXPECT_THAT(refusal(broken, {}), has_all("text.jsonl:2"));
  EXPECT_FALSE(fs::exists(path("run")));
  // What was there before stays.
  make_folders(cache);
  EXPECT_NE(refusal(broken, {}), "");
  EXPECT_TRUE(fs::is_empty(cache));
}

TEST_F(OpenCorpus, ACorpusOfAnotherTokenizerIsNotOpened) {
  ASSERT_TRUE(tokenize_files({write("text", "a film")}, "corpus"));
  const auto other = text::Tokenizer::load(golden("unigram"));
  EXPECT_EQ(open_corpus(path("corpus"), roberta(), golden("roberta"), path("cache"))->documents(), 1);
  EXPECT_THAT(
      message_of<ConfigError>([&] { open_corpus(path("corpus"), other, golden("unigram"), path("cache")); }),
      has_all("corpus", "another tokenizer", "unigram"));
  EXPECT_FALSE(fs::exists(path("cache")));
}

}  // namespace
}  // namespace stretto::token_corpus
