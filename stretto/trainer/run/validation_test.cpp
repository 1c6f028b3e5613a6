#include "stretto/trainer/run/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/trainer/run/loop_fixture.h"

namespace stretto::trainer {
namespace {

using ::testing::ElementsAre;

// Takes a pass per character of a text, and adds the number of its characters to it.
struct Writer : Line {
  std::vector<std::string> continue_texts(const std::vector<std::string>& texts, nn::Kernels,
                                          const std::function<bool(bool)>& next_pass) override {
    std::vector<std::string> continuations;
    for (const std::string& text : texts) {
      for (size_t i = 0; i < text.size(); ++i, ++passes) {
        if (next_pass) {
          EXPECT_TRUE(next_pass(true));
        }
      }
      continuations.push_back(std::to_string(text.size()));
    }
    for (; next_pass && next_pass(false); ++passes) ++further_passes;
    return continuations;
  }
  int passes = 0, further_passes = 0;
};

// The passes of each of three ranks, of which the last two have nothing to do at the end.
std::vector<int> passes_of_ranks(bool collective_forward, bool further) {
  std::vector<int> passes(3);
  comm::run_rank_threads(3, [&](Group& group) {
    Recipe recipe;
    recipe.evaluate.samples = {"aaaa", "bb", "c", "ddd"};
    Writer module;
    const Mesh mesh(group, {.dp_shard = 3});
    const auto texts = continue_texts(
        recipe, module, mesh, {.device = at::kCPU, .autocast = {}, .collective_forward = collective_forward});
    EXPECT_THAT(texts, ElementsAre("aaaa4", "bb2", "c1", "ddd3"));
    passes[static_cast<size_t>(group.rank())] = further ? module.further_passes : module.passes;
  });
  return passes;
}

TEST(ContinuedTexts, AreSharedByTheRanks) {
  EXPECT_THAT(passes_of_ranks(false, false), ElementsAre(7, 2, 1));
}

TEST(ContinuedTexts, TakeEquallyManyCollectivePasses) {
  EXPECT_THAT(passes_of_ranks(true, false), ElementsAre(7, 7, 7));
  EXPECT_THAT(passes_of_ranks(true, true), ElementsAre(0, 5, 6)) << "the texts themselves are shared";
}

}  // namespace
}  // namespace stretto::trainer
