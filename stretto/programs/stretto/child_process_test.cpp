#include "stretto/programs/stretto/child_process.h"

#include <csignal>

#include <gtest/gtest.h>
#include <unistd.h>

namespace stretto::cli {
namespace {

TEST(RunInChild, ReturnsTheExitCodeOrTheSignal) {
  EXPECT_EQ(run_in_child([] { return 3; }).exit_code, 3);
  EXPECT_EQ(run_in_child([] { return ::raise(SIGKILL); }).exit_code, 128 + SIGKILL);
  EXPECT_EQ(run_in_child([] { return 0; }).end_request, 0);
}

// The child completes its work even if it is asked to end.
TEST(RunInChild, AnEndThatWasRequestedIsReportedBesideTheResult) {
  const ChildEnd end = run_in_child([] {
    std::signal(SIGTERM, SIG_IGN);
    return ::kill(::getppid(), SIGTERM);
  });
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.end_request, SIGTERM);
}

}  // namespace
}  // namespace stretto::cli
