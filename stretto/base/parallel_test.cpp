#include "stretto/base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stretto/base/message_support.h"

namespace stretto {
namespace {

TEST(Parallel, RunsEachIndexOnce) {
  for (const int threads : {0, 1, 3}) {
    std::vector<std::atomic<int>> calls(100);
    run_in_parts(calls.size(), threads, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) ++calls[i];
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(Parallel, ThrowsTheFirstFailure) {
  const auto fail_from = [](size_t first) {
    return [first](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        if (i >= first) throw std::runtime_error(std::to_string(i));
    };
  };
  for (int repetition = 0; repetition < 100; ++repetition) {
    EXPECT_EQ(message_of<std::runtime_error>([&] { run_in_parts(1000, 4, fail_from(300)); }), "300");
  }
}

}  // namespace
}  // namespace stretto
