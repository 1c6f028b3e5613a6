#include "stretto/base/utf8.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

std::string replaced(std::string_view text) {
  std::string buffer;
  return std::string(replace_invalid_utf8(text, buffer));
}

TEST(Utf8, ValidTextIsNotCopied) {
  const std::string text = "plain ASCII that is longer than a word, then \u00e9\u4e2d\U0001f600";
  std::string buffer;
  EXPECT_EQ(replace_invalid_utf8(text, buffer).data(), text.data());
}

TEST(Utf8, EachMaximalInvalidSubpartBecomesOneReplacementCharacter) {
  EXPECT_EQ(replaced("a\xff"
                     "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(replaced("\xf0\x9f\x98"), "\ufffd");  // a truncated four-byte character
  EXPECT_EQ(replaced("\xe4\xb8"
                     "a"),
            "\ufffd"
            "a");                                                       // the byte after it is kept
  EXPECT_EQ(replaced("\xc0\x80"), "\ufffd\ufffd");                      // overlong: both bytes are invalid
  EXPECT_EQ(replaced("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");            // a surrogate
  EXPECT_EQ(replaced("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // beyond U+10FFFF
  EXPECT_EQ(replaced("\xf1\x80\x80\xf1\x80\x80\x80"), "\ufffd\U00040000");
}

TEST(Utf8, TextIsCutBetweenCodePoints) {
  const std::string text = "a\u00e9\U0001f600";
  EXPECT_EQ(cut_utf8(text, 7), text);
  EXPECT_EQ(cut_utf8(text, 6), "a\u00e9");
  EXPECT_EQ(cut_utf8(text, 3), "a\u00e9");
  EXPECT_EQ(cut_utf8(text, 2), "a");
  EXPECT_EQ(cut_utf8("\u00e9", 1), "");
}

}  // namespace
}  // namespace stretto
