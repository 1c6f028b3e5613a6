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

TEST(Hash, HexadecimalDigits) {
  EXPECT_EQ(to_hex(std::string_view("\x00\x0a\xff", 3)), "000aff");
  EXPECT_TRUE(is_hex("0a9f", 4));
  for (const char* other : {"0a9", "0a9f0", "0a9F", "0a9g"}) EXPECT_FALSE(is_hex(other, 4)) << other;
}

}  // namespace
}  // namespace stretto
