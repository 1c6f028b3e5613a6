#include "stretto/base/progress_bar.h"

#include <gtest/gtest.h>

#include "stretto/base/terminal.h"

namespace stretto {
namespace {

TEST(ProgressBarTest, FitsItsTerminal) {
  EXPECT_EQ(bar_line("evaluating", 34, 100, "batches", 12, 80),
            "evaluating  34 % [########----------------] 34/100 batches | 12s left");
  EXPECT_EQ(bar_line("evaluating", 34, 100, "batches", 12, 50),
            "evaluating  34 % [#####----------] 34/100 batches");
  EXPECT_EQ(bar_line("evaluating", 34, 100, "batches", 12, 12), " 34 % evalu");
  EXPECT_EQ(bar_line("reading {}", 3, 3, "files", 0, 60),
            "reading {} 100 % [#################] 3/3 files | 0.00s left");
  for (int columns = 0; columns < 120; ++columns)
    EXPECT_LE(std::ssize(bar_line("evaluating", 1, 3, "batches", 7265, columns)), std::max(0, columns - 1))
        << columns;
}

TEST(ProgressBarTest, UnknownTotalsAndTooMuchWorkAreShown) {
  EXPECT_EQ(bar_line("x", 5, 0, "y", 0, 40), "x   0 % [----------] 5/0 y | 0.00s left");
  EXPECT_EQ(progress_cells(7, 4), "[####]");
  EXPECT_EQ(progress_cells(-1, 4), "[----]");
}

}  // namespace
}  // namespace stretto
