#include "stretto/text/string_table.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace stretto::text {
namespace {

TEST(StringTable, FindsTheLongestPrefix) {
  StringTable table(4);
  table.insert("a", 1);
  table.insert("abc", 2);
  table.insert("\u00e9", 3);
  EXPECT_EQ(table.longest_prefix("abcd").size, 3);
  EXPECT_EQ(table.longest_prefix("abcd").value, 2);
  EXPECT_EQ(table.longest_prefix("abx").value, 1);
  EXPECT_EQ(table.longest_prefix("\u00e9x").size, 2);
  EXPECT_EQ(table.longest_prefix("xabc").size, 0);
  EXPECT_EQ(table.longest_prefix("").size, 0);
}

TEST(StringTable, KeysEndWhereCodePointsEnd) {
  StringTable table(1);
  const std::string half = std::string("\u00e9").substr(0, 1);
  table.insert(half, 1);
  EXPECT_EQ(table.longest_prefix("\u00e9").size, 0);
}

TEST(StringTable, GrowsAndKeepsTheLastValue) {
  std::map<std::string, int32_t> expected;
  for (int i = 0; i < 5000; ++i) expected["key" + std::to_string(i * 7919)] = i;
  StringTable table(0);
  for (const auto& [key, value] : expected) table.insert(key, value + 1);
  for (const auto& [key, value] : expected) table.insert(key, value);
  EXPECT_EQ(table.size(), expected.size());
  for (const auto& [key, value] : expected) EXPECT_EQ(table.find(key), value) << key;
  EXPECT_EQ(table.find("key"), -1);
}

}  // namespace
}  // namespace stretto::text
