#include "stretto/cluster/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto::cluster {
namespace {

TEST(Secret, ProofIsHmacSha256) {
  // RFC 4231, test case 2.
  const unsigned char expected[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
                                    0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
                                    0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
  EXPECT_EQ(prove("Jefe", "what do ya want for nothing?"),
            std::string(reinterpret_cast<const char*>(expected), sizeof expected));
}

TEST(Secret, EachIsNew) {
  EXPECT_THAT(make_secret(), ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(make_secret().size(), 64u);
  EXPECT_NE(make_secret(), make_secret());
}

TEST(Secret, Comparison) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

}  // namespace
}  // namespace stretto::cluster
