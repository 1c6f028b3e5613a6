#include "stretto/base/wake.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace stretto {
namespace {

bool is_readable(const Wake& wake) {
  pollfd watched = {wake.fd(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST(Wake, IsReadableUntilItIsDrained) {
  const Wake wake;
  wake.drain();  // does not wait
  EXPECT_FALSE(is_readable(wake));
  wake.wake();
  wake.wake();
  EXPECT_TRUE(is_readable(wake));
  wake.drain();
  EXPECT_FALSE(is_readable(wake));
}

}  // namespace
}  // namespace stretto
