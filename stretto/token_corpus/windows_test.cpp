#include "stretto/token_corpus/windows.h"

#include <map>

#include "stretto/base/error.h"
#include "stretto/token_corpus/block_range.h"
#include "stretto/token_corpus/corpus_fixture.h"

namespace stretto::token_corpus {
namespace {

using ::testing::ElementsAreArray;

class WindowsTest : public CorpusTest {
 protected:
  std::shared_ptr<const Corpus> corpus_of(size_t bytes) const {
    tokenize_files({write("text.txt", random_text(bytes, 3))}, "corpus");
    return std::make_shared<const Corpus>(path("corpus"));
  }
};

// Each token but the first is predicted once, with the preceding tokens of its window as context.
TEST_F(WindowsTest, PredictEachTokenOnce) {
  const auto corpus = corpus_of(400);
  std::vector<int32_t> all;
  corpus->read(0, corpus->tokens(), all);
  for (const int32_t window : {2, 7, 64, 10000}) {
    for (const int32_t stride : {1, 2, window / 2, window - 1}) {
      if (stride < 1 || stride >= window) continue;
      SCOPED_TRACE(fmt::format("windows of {} every {}", window, stride));
      const Windows windows(corpus, window, stride);
      std::map<int64_t, int> predicted;
      int64_t tokens = 0;
      for (int64_t i = 0; i < windows.size(); ++i) {
        const Block block = windows.read(i);
        EXPECT_EQ(std::ssize(block.ids), windows.length(i));
        tokens += std::ssize(block.ids);
        const int64_t begin = i * stride;
        EXPECT_THAT(block.ids,
                    ElementsAreArray(all.begin() + begin, all.begin() + begin + windows.length(i)));
        for (int64_t t = std::max(1, block.first_predicted); t < std::ssize(block.ids); ++t) {
          ++predicted[begin + t];
          EXPECT_TRUE(i == 0 || t >= window - stride) << t;
        }
      }
      EXPECT_EQ(std::ssize(predicted), corpus->tokens() - 1);
      for (const auto& [token, times] : predicted) EXPECT_EQ(times, 1) << token;
      EXPECT_EQ(windows.tokens(), tokens);
    }
  }
}

TEST_F(WindowsTest, RefuseStridesThatSkipTokens) {
  const auto corpus = corpus_of(100);
  EXPECT_THROW(Windows(corpus, 8, 9), ConfigError);
  EXPECT_THROW(Windows(corpus, 8, 0), ConfigError);
  EXPECT_THROW(Windows(corpus, 1, 1), ConfigError);
}

// Two ranges together contain the blocks of the whole.
TEST_F(WindowsTest, RangesDivideBlocks) {
  const auto blocks = std::make_shared<const CorpusBlocks>(corpus_of(400), BlockOptions{.block_size = 16});
  const int64_t half = blocks->size() / 2;
  const BlockRange first(blocks, 0, half), second(blocks, half, blocks->size() - half);
  EXPECT_EQ(first.tokens() + second.tokens(), blocks->tokens());
  for (int64_t i = 0; i < blocks->size(); ++i) {
    const Block part = i < half ? first.read(i) : second.read(i - half);
    EXPECT_EQ(part.ids, blocks->read(i).ids);
  }
  EXPECT_NE(first.fingerprint(), second.fingerprint());
}

}  // namespace
}  // namespace stretto::token_corpus
