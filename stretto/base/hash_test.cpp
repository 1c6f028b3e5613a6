#include "stretto/base/hash.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

// RFC 3720, appendix B.4, and the usual check value.
TEST(Hash, Crc32cOfKnownBytes) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

}  // namespace
}  // namespace stretto
