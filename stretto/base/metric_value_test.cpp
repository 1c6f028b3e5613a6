#include "stretto/base/metric_value.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(MetricValue, CountsAreIntegers) {
  EXPECT_EQ(metric_json("HasAns_total", 36).dump(), "36");
  EXPECT_EQ(metric_text("HasAns_total", 36), "HasAns_total 36");
  EXPECT_EQ(metric_text("total", 12000), "total 12000");
  EXPECT_EQ(metric_text("hard/total", 7), "hard/total 7");
}

TEST(MetricValue, OtherMetricsAreNotIntegers) {
  EXPECT_EQ(metric_json("accuracy", 1).dump(), "1.0");
  EXPECT_EQ(metric_text("accuracy", 1), "accuracy 1.0000");
  EXPECT_EQ(metric_text("subtotal", 2), "subtotal 2.0000");
  EXPECT_EQ(metric_text("loss_total", 0.25), "loss_total 0.2500");
  EXPECT_EQ(metric_text("total", NAN), "total nan");
  EXPECT_EQ(metric_json("loss", NAN), "nan");
  EXPECT_EQ(metric_json("total", -INFINITY), "-inf");
}

TEST(MetricValue, IsReadBack) {
  for (const double value : {0.25, 36.0, HUGE_VAL, -HUGE_VAL})
    EXPECT_EQ(metric_of_json(metric_json("total", value)), value);
  EXPECT_TRUE(std::isnan(metric_of_json(metric_json("loss", NAN)).value()));
  EXPECT_EQ(metric_of_json("fine"), std::nullopt);
  EXPECT_EQ(metric_of_json(nullptr), std::nullopt);
}

}  // namespace
}  // namespace stretto
