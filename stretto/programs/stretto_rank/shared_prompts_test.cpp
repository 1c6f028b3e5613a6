#include "stretto/programs/stretto_rank/shared_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/comm/rank_threads.h"

namespace stretto::rank {
namespace {

void echo(const std::vector<std::string>& texts, int64_t first, int64_t stride,
          std::vector<std::vector<GeneratedText>>& found) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] == "bad") throw DataError("cannot continue \"bad\"");
    const int64_t number = first + static_cast<int64_t>(i) * stride;
    found.push_back({{fmt::format("{} {}", texts[i], number), {static_cast<int32_t>(number)}}});
  }
}

// Returns what rank 0 receives for the prompts, the message of an error at the end.
std::vector<std::string> shared(int ranks, const std::vector<std::string>& prompts) {
  std::vector<std::string> received;
  comm::run_rank_threads(ranks, [&](Group& group) {
    SharedPrompts shared(group, 1, echo, [&](const std::string& prompt, const auto& found) {
      received.push_back(prompt + ": " + found.at(0).text);
    });
    if (group.rank() != 0) return shared.serve();
    try {
      for (const std::string& prompt : prompts) shared.add(prompt);
      shared.finish();
    } catch (const DataError& error) {
      received.push_back(error.what());
    }
    shared.end();
  });
  return received;
}

TEST(SharedPrompts, ResultsAreInTheOrderOfPromptsForAnyNumberOfRanks) {
  std::vector<std::string> prompts, expected;
  for (int i = 0; i < 45; ++i) {  // several rounds, of which the last one is incomplete
    prompts.push_back(fmt::format("prompt\xff {}", i));
    expected.push_back(fmt::format("{}: {} {}", prompts.back(), prompts.back(), i));
  }
  for (const int ranks : {1, 2, 3}) EXPECT_EQ(shared(ranks, prompts), expected) << ranks;
  EXPECT_THAT(shared(2, {}), ::testing::IsEmpty());
}

TEST(SharedPrompts, AFailureOfAnyRankIsReportedOnceAfterThePromptsBeforeIt) {
  for (const int bad : {0, 1, 4}) {
    std::vector<std::string> prompts(6, "good"), expected;
    prompts[static_cast<size_t>(bad)] = "bad";
    for (int i = 0; i < bad; ++i) expected.push_back(fmt::format("good: good {}", i));
    expected.emplace_back("cannot continue \"bad\"");
    EXPECT_EQ(shared(3, prompts), expected) << bad;
  }
}

}  // namespace
}  // namespace stretto::rank
