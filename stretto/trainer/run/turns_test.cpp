#include "stretto/trainer/run/turns.h"

#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "stretto/base/message_support.h"

namespace stretto::trainer {
namespace {

TEST(Turns, OneRunsAtATimeInOrder) {
  std::string order;
  const at::NoGradGuard no_grad;
  const int threads = at::get_num_threads();
  Turns turns(3);
  turns.run([&](int64_t own) {
    EXPECT_FALSE(at::GradMode::is_enabled()) << "the state of the calling thread";
    EXPECT_EQ(at::get_num_threads(), threads);
    for (int step = 0; step < 2; ++step) {
      order += static_cast<char>('a' + own);
      turns.pass(own);
    }
    order += static_cast<char>('A' + own);
  });
  EXPECT_EQ(order, "abcabcABC");
}

TEST(Turns, OthersContinueAfterOneHasEnded) {
  std::string order;
  Turns turns(2);
  turns.run([&](int64_t own) {
    for (int64_t step = 0; step < 2 * own; ++step) {
      order += static_cast<char>('0' + step);
      turns.pass(own);
    }
  });
  EXPECT_EQ(order, "01");
}

TEST(Turns, AnErrorEndsAllOfThem) {
  std::string order;
  Turns turns(3);
  EXPECT_THAT(message_of<std::runtime_error>([&] {
                turns.run([&](int64_t own) {
                  order += static_cast<char>('a' + own);
                  if (own == 1) throw std::runtime_error("of the second");
                  turns.pass(own);
                  order += '!';
                });
              }),
              "of the second");
  EXPECT_EQ(order, "ab") << "the first does not continue, the third does not begin";
}

}  // namespace
}  // namespace stretto::trainer
