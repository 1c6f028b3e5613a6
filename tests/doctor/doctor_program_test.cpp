#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(Doctor, PrintsTheMachineAndMeasuresIt) {
  const ShellResult result = shell(STRETTO_PROGRAM " doctor -N 2");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("processor  "), HasSubstr("cores      "), HasSubstr("127.0.0.1")));
  EXPECT_THAT(result.err, AllOf(ContainsRegex("libtorch   [0-9]+\\.[0-9]+"), HasSubstr("GFLOP/s per rank"),
                                ContainsRegex("copying    [0-9.]+ GB/s"), HasSubstr("25 MiB"),
                                HasSubstr("over 2 ranks"), ContainsRegex("no problems found|fix        ")));
}

TEST(Doctor, RefusesNoRanks) {
  const ShellResult result = shell(STRETTO_PROGRAM " doctor -N 0");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("nproc-per-node: \"0\" is not a whole number from 1 to 4096"));
}

TEST(Doctor, RefusesMoreRanksThanFitInMemory) {
  const ShellResult result = shell(STRETTO_PROGRAM " doctor -N 4096");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("4096 ranks need at least 1.5 TiB of memory"));
}

}  // namespace
}  // namespace stretto
