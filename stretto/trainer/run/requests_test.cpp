#include "stretto/trainer/run/requests.h"

#include <chrono>
#include <csignal>
#include <ctime>

#include <gtest/gtest.h>
#include <unistd.h>

namespace stretto::trainer {
namespace {

TEST(RequestSignals, AreTakenOnceExceptAStop) {
  const RequestSignals signals;
  EXPECT_FALSE(signals.take().save);
  ::raise(SIGUSR1);
  EXPECT_TRUE(signals.take().save);
  EXPECT_FALSE(signals.take().save);
  ::raise(SIGTERM);
  EXPECT_TRUE(signals.take().stop);
  EXPECT_TRUE(signals.take().stop);
}

// Slurm signals the launcher and its ranks at the same time.
TEST(RequestSignals, ASignalThatComesTwiceAtOnceIsOneRequest) {
  const RequestSignals signals;
  ::raise(SIGTERM);
  ::raise(SIGTERM);
  EXPECT_TRUE(signals.take().stop);
}

TEST(RequestSignalsDeathTest, ALaterSecondSignalEndsTheProcess) {
  const auto ask_twice = [] {
    const RequestSignals signals;
    ::raise(SIGTERM);
    ::usleep(1'100'000);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(ask_twice(), ::testing::KilledBySignal(SIGTERM), "");
}

// Each signal arrives some microseconds after the previous one was taken, while requests are taken
// continuously. If reading and resetting were separate operations, signals in between would be lost.
TEST(RequestSignals, ASaveRequestedWhileRequestsAreTakenIsNotLost) {
  const RequestSignals signals;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer{};
  ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const auto comes = [&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      for (int i = 0; i < 1000; ++i) {
        if (signals.take().save) return true;
      }
    }
    return false;
  };
  for (int request = 0; request < 2000; ++request) {
    const itimerspec once = {.it_interval = {},
                             .it_value = {.tv_sec = 0, .tv_nsec = 1000 + 97 * (request % 100)}};
    ASSERT_EQ(::timer_settime(timer, 0, &once, nullptr), 0);
    ASSERT_TRUE(comes()) << "request " << request << " was lost";
  }
  ::timer_delete(timer);
}

}  // namespace
}  // namespace stretto::trainer
