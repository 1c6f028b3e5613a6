#include "stretto/corpus/tags.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::corpus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tags = std::vector<std::string>;

TEST(Tags, LenientSpansOfAnySequence) {
  EXPECT_THAT(lenient_spans(Tags{"B-PER", "I-PER", "O", "B-LOC"}),
              ElementsAre(Span{0, 2, "PER"}, Span{3, 4, "LOC"}));
  EXPECT_THAT(lenient_spans(Tags{"I-PER", "I-PER", "B-PER"}),
              ElementsAre(Span{0, 2, "PER"}, Span{2, 3, "PER"}));
  EXPECT_THAT(lenient_spans(Tags{"I-PER", "I-LOC"}), ElementsAre(Span{0, 1, "PER"}, Span{1, 2, "LOC"}));
  EXPECT_THAT(lenient_spans(Tags{"S-A", "B-A", "E-A", "I-A"}),
              ElementsAre(Span{0, 1, "A"}, Span{1, 3, "A"}, Span{3, 4, "A"}));
  EXPECT_THAT(lenient_spans(Tags{"B", "I-X-Y"}), ElementsAre(Span{0, 1, "_"}, Span{1, 2, "X-Y"}));
  EXPECT_THAT(lenient_spans(Tags{}), ElementsAre());
}

// A prefix is one character of one or more bytes, as in seqeval.
TEST(Tags, PrefixesAreCharacters) {
  EXPECT_THAT(lenient_spans(Tags{"\u00c9X", "\u00c9-Y", "O"}), ElementsAre(Span{0, 1, "X"}, Span{1, 2, "Y"}));
  EXPECT_EQ(type_of_tag("B\u00c9-Y"), "Y");
  EXPECT_EQ(type_of_tag("\xc3"), "_");
}

TEST(Tags, StrictSpansAreWellFormed) {
  const Tags tags = {"I-PER", "B-PER", "I-PER", "I-LOC", "B-LOC"};
  EXPECT_THAT(strict_spans(tags, TagScheme::iob2), ElementsAre(Span{1, 3, "PER"}, Span{4, 5, "LOC"}));
  EXPECT_THAT(strict_spans(Tags{"B-A", "I-A", "O", "S-A"}, TagScheme::iobes), ElementsAre(Span{3, 4, "A"}));
  EXPECT_THAT(strict_spans(Tags{"U-A", "B-B", "L-B"}, TagScheme::bilou),
              ElementsAre(Span{0, 1, "A"}, Span{1, 3, "B"}));
}

TEST(Tags, EverySchemeIsReadBack) {
  std::mt19937 random(1);
  for (const char* name : {"IOB1", "IOB2", "IOE2", "IOBES", "BILOU"}) {
    const TagScheme scheme = parse_tag_scheme(name);
    for (int round = 0; round < 200; ++round) {
      std::vector<Span> spans;
      size_t at = random() % 3;
      while (at < 20) {
        const size_t end = at + 1 + random() % 3;
        spans.push_back({at, end, random() % 2 == 0 ? "A" : "B-C"});
        at = end + random() % 3;
      }
      const Tags tags = write_tags(spans, 30, scheme);
      EXPECT_EQ(strict_spans(tags, scheme), spans) << name;
      const bool lenient = scheme != TagScheme::ioe2 && scheme != TagScheme::bilou;
      if (lenient) {
        EXPECT_EQ(lenient_spans(tags), spans) << name;
      }
    }
  }
  EXPECT_THAT(write_tags(std::vector<Span>{{0, 2, "A"}, {2, 3, "A"}}, 4, TagScheme::ioe1),
              ElementsAre("I-A", "E-A", "I-A", "O"));
}

TEST(Tags, SchemesHaveSecondNames) {
  EXPECT_EQ(name_of(parse_tag_scheme("BIOES")), "IOBES");
  EXPECT_EQ(name_of(parse_tag_scheme("bio")), "IOB2");
}

TEST(Tags, SchemesAreDetectedAsBySeqeval) {
  const auto detect = [](const Tags& tags) { return name_of(detect_tag_scheme(std::vector<Tags>{tags})); };
  EXPECT_EQ(detect({"B-A", "O"}), "IOB2");
  EXPECT_EQ(detect({"I-A", "E-A", "O"}), "IOE2");
  EXPECT_EQ(detect({"B-A", "E-A", "S-A"}), "IOBES");
  EXPECT_EQ(detect({"U-A"}), "BILOU");
  EXPECT_THROW(detect({"I-A", "O"}), DataError);
}

TEST(Tags, Refusals) {
  EXPECT_THAT(message_of([] { parse_tag_scheme("IOB3"); }),
              HasSubstr("scheme: \"IOB3\" is not a tag scheme; did you mean \"IOB1\""));
  EXPECT_THAT(message_of([] { strict_spans(Tags{"X-A"}, TagScheme::iob2); }),
              HasSubstr("\"X-A\" is not a tag"));
  EXPECT_THAT(message_of([] { strict_spans(Tags{"S-A"}, TagScheme::iob2); }),
              HasSubstr("the tag \"S-A\" does not occur in IOB2"));
  EXPECT_THAT(message_of([] {
                detect_tag_scheme(std::vector<Tags>{{"I-A", "S-A"}});
              }),
              HasSubstr("the prefixes of the gold tags are I, S"));
}

}  // namespace
}  // namespace stretto::corpus
