#include "stretto/launch/output/lines.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto::launch {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> lines_of(const std::vector<std::string>& chunks) {
  std::vector<std::string> result;
  const auto take = [&](std::string_view line) { result.emplace_back(line); };
  Lines lines;
  for (const std::string& chunk : chunks) lines.feed(chunk, take);
  lines.finish(take);
  return result;
}

TEST(Lines, SplitsAcrossChunks) {
  EXPECT_THAT(lines_of({"a", "b\nc", "\n\nd"}), ElementsAre("ab", "c", "", "d"));
  EXPECT_THAT(lines_of({"windows\r", "\nnext\r\n"}), ElementsAre("windows", "next"));
}

TEST(Lines, KeepsTheLastStateOfALiveLine) {
  EXPECT_THAT(lines_of({"\rstep 1", "\rstep 2", "\rstep 3\n"}), ElementsAre("step 3"));
  EXPECT_THAT(lines_of({"\rstep 1\r\033[Kwarning\n\rstep 2"}), ElementsAre("warning", "step 2"));
}

TEST(Lines, SplitsEndlessLines) {
  const auto lines = lines_of({std::string(100'000, 'x')});
  EXPECT_THAT(lines, ElementsAre(std::string(65'536, 'x'), std::string(100'000 - 65'536, 'x')));
}

}  // namespace
}  // namespace stretto::launch
