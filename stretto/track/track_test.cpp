#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/temp_folder.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/progress.h"

namespace stretto {
namespace {

TEST(Progress, OneLineTellsAll) {
  EXPECT_EQ(progress_line({120, 1053, 0.114, 0.41234, 4.8e-5, 212.3, 2840.4}, 93),
            "step 120/1053 | epoch 0.11 | loss 0.4123 | lr 4.80e-05 | 212.3 samples/s | 2,840 tokens/s | ETA "
            "1m 33s");
}

TEST(Progress, SpeedIsNotGuessedBeforeItIsMeasured) {
  EXPECT_EQ(progress_line({1, 9, 0.1, 0.7, 1e-5}, 0), "step 1/9 | epoch 0.10 | loss 0.7000 | lr 1.00e-05");
}

TEST(Progress, OnlyRankZeroShows) {
  EXPECT_EQ(Progress::choose("auto", 1), Progress::Mode::off);
  EXPECT_EQ(Progress::choose("off", 0), Progress::Mode::off);
  EXPECT_EQ(Progress::choose("line", 0), Progress::Mode::lines);
}

TEST(MetricsLog, OneObjectALineAndAppends) {
  const TempFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  MetricsLog(path).write({{"step", 1}, {"loss", 0.5}});
  MetricsLog(path).write({{"step", 2}, {"loss", std::nan("")}});
  EXPECT_EQ(read_file(path), "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":\"nan\"}\n");
}

}  // namespace
}  // namespace stretto
