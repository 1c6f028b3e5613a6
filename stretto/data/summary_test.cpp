#include "stretto/data/summary.h"

#include <gtest/gtest.h>

#include "stretto/data/reader.h"
#include "stretto/data/sample_lengths_fixture.h"

namespace stretto::data {
namespace {

TEST(Summary, CountsRowsAndClasses) {
  EXPECT_EQ(describe_table(parse_rows("Text,Label\na,no\nb,yes\nc,no\nd,no\n", "a.csv")),
            "4 texts; text = Text, label = Label (named columns); 2 classes: no 3 (75.0 %), yes 1 (25.0 %)");
  EXPECT_EQ(describe_table(parse_rows("premise\thypothesis\na\tb\n", "a.tsv")),
            "1 pairs of texts; text = premise, text_pair = hypothesis (named columns); no labels");
}

TEST(Summary, DescribesLengths) {
  std::vector<int32_t> lengths;
  for (int32_t length = 100; length > 0; --length) lengths.push_back(std::min(length, 97));
  EXPECT_EQ(describe_lengths(lengths_of(lengths), 97),
            "50 tokens (median), 95 (95 %), 97 (longest); 4.0 % are cut at max_length 97");
  EXPECT_EQ(describe_lengths(SampleLengths{}, 97), "no texts");
}

}  // namespace
}  // namespace stretto::data
