#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

// A program's output, separated into words and numbers.
struct Reading {
  std::string words;
  std::vector<double> numbers;
};

Reading read(const std::string& output) {
  Reading reading;
  std::string text = output;
  std::ranges::replace(text, '\n', ' ');
  for (const std::string_view word : split(text, ' ')) {
    if (const auto number = parse_double(word)) {
      reading.numbers.push_back(*number);
    } else {
      reading.words += std::string(word) + " ";
    }
  }
  return reading;
}

class Example : public ::testing::TestWithParam<const char*> {};

TEST_P(Example, LiteFormEqualsThePlainOneOnOneAndTwoRanks) {
  const std::string program = fmt::format("{}/{}", EXAMPLES, GetParam());
  const auto plain = shell("OMP_NUM_THREADS=1 " + program + "_plain");
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const Reading expected = read(plain.out);
  ASSERT_GE(expected.numbers.size(), 8u);
  for (const int ranks : {1, 2}) {
    const auto run = shell(fmt::format("{} launch -N {} -- {}_lite", STRETTO_PROGRAM, ranks, program));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Reading reading = read(run.out);
    EXPECT_EQ(reading.words, expected.words);
    ASSERT_EQ(reading.numbers.size(), expected.numbers.size());
    for (size_t i = 0; i < expected.numbers.size(); ++i)
      EXPECT_NEAR(reading.numbers[i], expected.numbers[i], 2e-3);
  }
}

// The guide shows the actual difference between the two programs.
TEST_P(Example, GuideShowsTheTrueDifference) {
  const auto diff = shell(fmt::format("cd {}/{} && diff -U 100 plain.cpp lite.cpp", SOURCES, GetParam()));
  const std::string body = diff.out.substr(diff.out.find("@@\n") + 3);
  EXPECT_THAT(read_file(GUIDE), HasSubstr("```diff\n" + body + "```")) << "docs/guide/lite.md must contain:\n"
                                                                       << body;
}

INSTANTIATE_TEST_SUITE_P(All, Example, ::testing::Values("mlp", "tagger"),
                         [](const auto& info) { return std::string(info.param); });

// Validation counts each picture once, and a resumed run equals an uninterrupted one.
TEST(Example, WholeProgramResumes) {
  const TempFolder folder;
  const auto whole = [&](int ranks, const char* name, int epochs) {
    const auto run = shell(fmt::format("cd {} && {} launch -N {} -- {}/whole {} {}", folder.path().string(),
                                       STRETTO_PROGRAM, ranks, EXAMPLES, name, epochs));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  const std::string through = whole(2, "through", 4);
  EXPECT_THAT(through, HasSubstr("epoch 4 | "));
  EXPECT_THAT(through, HasSubstr(" of 99 right"));
  const std::string parts = whole(2, "parts", 2) + whole(2, "parts", 4);
  EXPECT_EQ(parts, through);
  const auto same = shell(fmt::format(
      "cd {} && for file in through/step-00000004/*.safetensors; do cmp $file parts/step-00000004/$(basename $file); done",
      folder.path().string()));
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "through-best.pt"));
}

// Layers on 2 and 4 ranks train like whole ones, also in a last batch that is smaller, and a run continues on
// any mesh.
TEST(Example, DividedLayersTrainLikeWholeOnesAndResume) {
  const TempFolder folder;
  const auto run = [&](int ranks, int tp, int epochs, const char* name) {
    const auto result =
        shell(fmt::format("cd {} && {} launch -N {} --no-pin -- {}/lite_divided {} {} {}",
                          folder.path().string(), STRETTO_PROGRAM, ranks, EXAMPLES, tp, epochs, name));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string whole = run(1, 1, 3, "");
  EXPECT_THAT(whole, HasSubstr("epoch 3 | 403 of 403 right"));
  for (const auto& [ranks, tp] : {std::pair(2, 2), {4, 2}}) EXPECT_EQ(run(ranks, tp, 3, ""), whole) << tp;
  EXPECT_EQ(run(4, 4, 3, "rows rows"), whole) << "sequence parallelism";
  const std::string parts =
      run(4, 2, 1, "checkpoints") + run(2, 1, 2, "checkpoints") + run(2, 2, 3, "checkpoints");
  EXPECT_EQ(parts, run(1, 1, 3, "alone"));
}

}  // namespace
}  // namespace stretto
