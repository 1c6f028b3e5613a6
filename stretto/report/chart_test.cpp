#include "stretto/report/chart.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/strings.h"
#include "stretto/report/axis.h"

namespace stretto::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

TEST(AxisTest, TicksAreRoundAndCoverTheValues) {
  EXPECT_THAT(make_axis(0.05, 0.69, 5).ticks,
              ElementsAre(0, ::testing::DoubleEq(0.2), ::testing::DoubleEq(0.4),
                          ::testing::DoubleNear(0.6, 1e-12), ::testing::DoubleEq(0.8)));
  const Axis steps = make_axis(1, 100, 4);
  EXPECT_EQ(steps.low, 0);
  EXPECT_EQ(steps.high, 100);
  for (const auto& [low, high] :
       {std::pair(0.0, 0.0), {5.0, 5.0}, {-3.0, -3.0}, {1e-9, 2e-9}, {-1e300, 1e300}}) {
    const Axis axis = make_axis(low, high, 5);
    EXPECT_LE(axis.low, low);
    EXPECT_GE(axis.high, high);
    EXPECT_LT(axis.low, axis.high);
    EXPECT_LE(axis.ticks.size(), 13u);
  }
}

TEST(AxisTest, LabelsHaveTheDigitsThatDistinguishThem) {
  const Axis losses = make_axis(0, 0.7, 5), steps = make_axis(0, 4000, 4), rates = make_axis(0, 5e-5, 5);
  EXPECT_EQ(tick_text(losses, losses.ticks[1]), "0.2");
  EXPECT_EQ(tick_text(steps, 3000), "3,000");
  EXPECT_EQ(tick_text(rates, rates.ticks[1]), "1e-05");
}

TEST(TextChart, ShowsACurve) {
  const Chart chart{"loss", "step", {{"loss", {{0, 1}, {50, 0.5}, {100, 0}}}}};
  EXPECT_EQ(text_chart(chart, {.columns = 40, .rows = 5, .ascii = true}),
            "loss\n"
            "1.0 +*****\n"
            "    |     ********\n"
            "0.5 +             ********\n"
            "    |                     ********\n"
            "  0 +                             *****\n"
            "    +----------------------------------\n"
            "     0               50            step\n"
            "  * loss  last 0  min 0  max 1\n");
  EXPECT_THAT(text_chart(chart, {.columns = 40, .rows = 5}),
              AllOf(HasSubstr("1.0 ┤⠉⠒⠒⠤⢄⣀\n    │      ⠉⠉⠒⠢⠤⢄⣀\n"), HasSubstr("└───")));
}

TEST(TextChart, FitsItsColumns) {
  Chart chart{"a long title that describes everything there is to know about the chart", "step", {}};
  for (int curve = 0; curve < 3; ++curve) {
    chart.curves.push_back({"runs/a-long-name-of-a-run-with-many-words-größer" + std::to_string(curve), {}});
    for (int x = 0; x < 300; ++x)
      chart.curves.back().points.emplace_back(x * 1000, std::sin(x * 0.05 + curve) * 12345);
  }
  for (const bool ascii : {false, true}) {
    for (int columns = 40; columns < 200; columns += 7) {
      const std::string text = text_chart(chart, {.columns = columns, .rows = 10, .ascii = ascii});
      for (const auto line : split(text, '\n')) EXPECT_THAT(text_width(line), Le(columns)) << line;
    }
  }
}

TEST(TextChart, ValuesThatAreNotFiniteAreGaps) {
  const Chart chart{"loss", "step", {{"loss", {{1, 1}, {2, NAN}, {3, INFINITY}, {4, 2}}}}};
  EXPECT_THAT(text_chart(chart, {.ascii = true}), HasSubstr("last 2  min 1  max 2"));
  EXPECT_EQ(text_chart({"loss", "step", {{"loss", {{1, NAN}}}}}, {}), "loss\n  no values\n");
  EXPECT_EQ(text_chart({"loss", "step", {}}, {}), "loss\n  no values\n");
}

TEST(SvgChart, EscapesTexts) {
  const Chart chart{"<script>alert(1)</script>", "step", {{"a & \"b\"\x01", {{1, 1}, {2, 2}}}}};
  EXPECT_THAT(svg_chart(chart), AllOf(Not(HasSubstr("<script")), HasSubstr("&lt;script&gt;"),
                                      HasSubstr("a &amp; &quot;b&quot;\xef\xbf\xbd: last 2, min 1, max 2")));
}

TEST(SvgChart, DrawsPathsWithGaps) {
  const Chart chart{"loss", "step", {{"loss", {{0, 0}, {1, 1}, {2, NAN}, {3, 1}, {4, 0}}}}};
  const std::string svg = svg_chart(chart);
  EXPECT_THAT(svg, HasSubstr("d=\"M72.0 356.0L250.0 40.0M606.0 40.0L784.0 356.0\""));
  EXPECT_THAT(svg_chart({"loss", "step", {}}), AllOf(HasSubstr("no values"), HasSubstr("</svg>")));
}

}  // namespace
}  // namespace stretto::report
