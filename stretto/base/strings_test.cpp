#include "stretto/base/strings.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Strings, SplitKeepsEmptyPieces) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Strings, WordsBetweenWhiteSpace) {
  EXPECT_EQ(split_words(" a\t\tbc \r\n"), (std::vector<std::string_view>{"a", "bc"}));
  EXPECT_EQ(split_words("a"), (std::vector<std::string_view>{"a"}));
  EXPECT_TRUE(split_words(" \v\f").empty());
}

TEST(Strings, TrimRemovesOuterSpace) {
  EXPECT_EQ(trim("  a b\r\n"), "a b");
  EXPECT_EQ(trim(" \t "), "");
}

TEST(Strings, LowerCaseChangesAsciiOnly) { EXPECT_EQ(lower_case("aBZ_1\u00c9"), "abz_1\u00c9"); }

TEST(Strings, ControlCharactersAreEscapedInTwoSpellings) {
  const std::string_view text = "a\x1b\x7f\t\n\u009b\u00e9\xc2";
  EXPECT_EQ(escape_controls(text, ControlEscape::hexadecimal), "a\\x1b\\x7f\t\n\\u009b\u00e9\xc2");
  EXPECT_EQ(escape_controls(text, ControlEscape::json), "a\\u001b\\u007f\t\n\\u009b\u00e9\xc2");
}

TEST(Strings, ClosestFindsTypingErrorsOnly) {
  const std::vector<std::string> optimizers = {"Adam", "AdamW", "Adamax", "SGD"};
  EXPECT_EQ(closest("adamx", optimizers), "Adam");
  EXPECT_EQ(closest("Admaw", optimizers), "AdamW");
  EXPECT_EQ(closest("RMSprop", optimizers), std::nullopt);
  EXPECT_EQ(did_you_mean("sdg", optimizers), "; did you mean \"SGD\"?");
  EXPECT_EQ(did_you_mean("AdamX", optimizers), "; did you mean \"Adam\", \"AdamW\" or \"Adamax\"?");
  EXPECT_EQ(
      did_you_mean("cosine", std::vector<std::string>{"StepLR", "CosineWithWarmup", "CosineAnnealingLR"}),
      "; did you mean \"CosineWithWarmup\" or \"CosineAnnealingLR\"?");
  EXPECT_EQ(did_you_mean("--nproc", std::vector<std::string>{"--set", "--nproc-per-node"}),
            "; did you mean \"--nproc-per-node\"?");
  EXPECT_EQ(did_you_mean("lrr", std::vector<std::string>{"lr", "lr"}), "; did you mean \"lr\"?");
}

TEST(Strings, HumanUnits) {
  EXPECT_EQ(human_duration(0.25), "0.25s");
  EXPECT_EQ(human_duration(93.4), "1m 33s");
  EXPECT_EQ(human_duration(7265), "2h 01m");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
}

TEST(Strings, ShellWordsStayOneWord) {
  EXPECT_EQ(shell_word("runs/a-1,b=2.yaml"), "runs/a-1,b=2.yaml");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("~/[a]"), "'~/[a]'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
}

TEST(Strings, NumbersAreWholeStrings) {
  EXPECT_EQ(parse_int("-12"), -12);
  EXPECT_EQ(parse_int("12x"), std::nullopt);
  EXPECT_EQ(parse_int(""), std::nullopt);
  EXPECT_EQ(parse_int("+5"), 5);
  for (const char* text : {"+-5", "-+5", "++5", "--5", "+", "-"})
    EXPECT_EQ(parse_int(text), std::nullopt) << text;
  EXPECT_EQ(parse_double("+-0.5"), std::nullopt);
  EXPECT_EQ(parse_double("3e-5"), 3e-5);
  EXPECT_EQ(parse_double("1e999"), std::nullopt);
}

}  // namespace
}  // namespace stretto
