#include "stretto/weights/float_types.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::weights {
namespace {

using ::testing::HasSubstr;

// Values between two numbers of the type, in parts that divide elements.
TEST(FloatTypes, RoundToTheNearestAndTiesToEven) {
  const auto cast = [](const char* type, double value) {
    std::string out;
    Cast cast("w", *find_float_type("F64"), float_type(type), [&](std::string_view bytes) { out += bytes; });
    const std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    cast.add(bytes.substr(0, 3));
    cast.add(bytes.substr(3));
    return find_float_type(float_type(type).name)->read(out.data());
  };
  EXPECT_EQ(cast("float16", 1 + 0x1p-11), 1);
  EXPECT_EQ(cast("float16", 1 + 0x1.8p-10), 1 + 0x1p-9);
  EXPECT_EQ(cast("float16", -65519), -65504);
  EXPECT_EQ(cast("float16", 0x1.8p-24), 0x1p-23);
  EXPECT_EQ(cast("float16", 0x1.ffcp-15), 0x1p-14);
  EXPECT_EQ(cast("float16", 2047.5), 2048);
  EXPECT_EQ(cast("bfloat16", 1 + 0x1p-8), 1);
  EXPECT_EQ(cast("bfloat16", 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(cast("bfloat16", 1 + 0x1.8p-7), 1 + 0x1p-6);
  EXPECT_EQ(cast("float32", 1 + 0x1p-24), 1);
  EXPECT_TRUE(std::isnan(cast("bfloat16", NAN)) && std::isnan(cast("float16", NAN)));
  EXPECT_EQ(cast("float16", -INFINITY), -INFINITY);
  EXPECT_THAT(message_of<DataError>([&] { cast("float16", 65520); }),
              HasSubstr("w holds 65520, which is too large for float16"));
  EXPECT_THAT(message_of<DataError>([&] { cast("bfloat16", 1e39); }), HasSubstr("too large for bfloat16"));
}

}  // namespace
}  // namespace stretto::weights
