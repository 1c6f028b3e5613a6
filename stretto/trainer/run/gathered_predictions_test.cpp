#include "stretto/trainer/run/gathered_predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/rank_threads.h"

namespace stretto::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor column(const std::vector<double>& values) { return at::tensor(values, at::kDouble).unsqueeze(1); }

TEST(GatheredPredictions, LeavesGapsForSamplesWithoutPredictions) {
  comm::run_rank_threads(2, [](Group& group) {
    GatheredPredictions gathered;
    if (group.rank() == 1) {
      gathered.add(std::vector<int64_t>{3, 0}, {column({3, 10}), {"three", std::string("\0", 1)}});
      gathered.add(std::vector<int64_t>{1}, {});
    }
    const Predictions all = gathered.gather(group, 4);
    if (group.rank() != 0) {
      EXPECT_TRUE(all.empty());
      return;
    }
    EXPECT_THAT(all.bytes, ElementsAre(std::string("\0", 1), "", "", "three"));
    EXPECT_EQ(all.rows[0].item<double>(), 10);
    EXPECT_EQ(all.rows[3].item<double>(), 3);
    EXPECT_TRUE(all.rows.slice(0, 1, 3).isnan().all().item<bool>());
  });
}

TEST(GatheredPredictions, OfOtherFormAreRefused) {
  GatheredPredictions gathered;
  gathered.add(std::vector<int64_t>{0}, column({1}));
  EXPECT_THAT(message_of<ShapeError>([&] {
                gathered.add(std::vector<int64_t>{1}, {Tensor(), {"text"}});
              }),
              has_all("rows of 1 values and no bytes for one batch", "no rows and bytes for another",
                      "the same for every batch"));
  EXPECT_THAT(message_of<ShapeError>([&] {
                gathered.add(std::vector<int64_t>{1}, at::zeros({1, 2}, at::kDouble));
              }),
              HasSubstr("rows of 2 values and no bytes"));
  comm::run_rank_threads(2, [](Group& group) {
    GatheredPredictions of_rank;
    of_rank.add(std::vector<int64_t>{group.rank()},
                group.rank() == 0 ? Predictions(column({1})) : Predictions(Tensor(), {"text"}));
    if (group.rank() == 0) {
      EXPECT_THAT(message_of<ShapeError>([&] { of_rank.gather(group, 2); }), HasSubstr("for another"));
    } else {
      EXPECT_TRUE(of_rank.gather(group, 2).empty());
    }
  });
}

}  // namespace
}  // namespace stretto::trainer
