#include "stretto/text/utf8.h"

#include <gtest/gtest.h>

namespace stretto::text {
namespace {

TEST(Utf8, CodePointsSurviveTheRoundTrip) {
  for (const char32_t value : {0x0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF}) {
    std::string bytes;
    append_utf8(bytes, value);
    EXPECT_TRUE(is_utf8(bytes));
    size_t position = 0;
    EXPECT_EQ(next_code_point(bytes, position), value);
    EXPECT_EQ(position, bytes.size());
    EXPECT_EQ(count_code_points(bytes), 1);
  }
}

}  // namespace
}  // namespace stretto::text
