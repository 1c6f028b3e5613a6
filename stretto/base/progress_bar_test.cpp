#include "stretto/base/progress_bar.h"

#include <gtest/gtest.h>

#include "stretto/base/terminal.h"

namespace stretto {
namespace {

std::string line(const std::string& what, int64_t done, int64_t total, int columns) {
  return bar_line(what, share_of(done, total), {count_text(done, total, "files"), "12s left"}, columns);
}

TEST(ProgressBarTest, FitsItsTerminal) {
  EXPECT_EQ(line("evaluating", 34, 100, 80),
            "evaluating  34 % [########----------------] 34/100 files | 12s left");
  EXPECT_EQ(line("evaluating", 34, 100, 49), "evaluating  34 % [#####-----------] 34/100 files");
  EXPECT_EQ(line("evaluating", 34, 100, 30), "evaluating  34 % [###-------]");
  EXPECT_EQ(line("evaluating", 34, 100, 12), " 34 % evalu");
  EXPECT_EQ(line("reading {}", 3, 3, 60), "reading {} 100 % [###################] 3/3 files | 12s left");
  EXPECT_EQ(line("", 34, 100, 24), " 34 % [#####----------]");
  EXPECT_EQ(bar_line("", 0.5, {"1/2"}, 80, 60),
            " 50 % [" + std::string(30, '#') + std::string(30, '-') + "] 1/2");
  for (int columns = 0; columns < 120; ++columns)
    EXPECT_LE(std::ssize(line("evaluating", 1, 3, columns)), std::max(0, columns - 1)) << columns;
}

TEST(ProgressBarTest, UnknownTotalsAndTooMuchWorkAreShown) {
  EXPECT_EQ(line("x", 5, 0, 40), "x   0 % [--------] 5/0 files | 12s left");
  EXPECT_EQ(share_of(7, 4), 1);
  EXPECT_EQ(progress_cells(7, 4), "[####]");
  EXPECT_EQ(progress_cells(-1, 4), "[----]");
}

TEST(ProgressBarTest, BytesHaveTheirUnits) {
  EXPECT_EQ(count_text(1536, 4 << 20, "bytes"), "1.5 KiB/4.0 MiB");
}

TEST(PaceTest, TheTimeLeftIsUnknownBeforeAnythingWasDone) {
  Pace pace;
  EXPECT_EQ(pace.seconds_left(3, 10), std::nullopt);
  pace.start(3);
  EXPECT_EQ(pace.seconds_left(3, 10), std::nullopt);
  pace.start(5);  // changes nothing
  EXPECT_GE(pace.seconds_left(5, 10).value(), 0);
  EXPECT_EQ(pace.seconds_left(10, 10), 0);
  EXPECT_GT(pace.per_second(5), 0);
  EXPECT_EQ(pace.per_second(3), 0);
}

}  // namespace
}  // namespace stretto
