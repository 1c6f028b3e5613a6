#include <cerrno>
#include <cmath>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/progress.h"
#include "stretto/track/text_log.h"

namespace stretto::track {
namespace {

TEST(Progress, OneLineShowsAllValues) {
  const Record record = {120,
                         0.114,
                         false,
                         {{"loss", 0.41234},
                          {"grad_norm", 2},
                          {"lr", 4.8e-5},
                          {"accuracy", 0.8125},
                          {"samples_per_second", 212.3},
                          {"tokens_per_second", 2840.4}}};
  EXPECT_EQ(
      progress_line(record, 1053, 93),
      "step 120/1053 | epoch 0.11 | loss 0.4123 | lr 4.80e-05 | accuracy 0.8125 | 212.3 samples/s | 2,840 tokens/s | ETA 1m 33s");
}

TEST(Progress, UnmeasuredSpeedIsOmitted) {
  EXPECT_EQ(progress_line({1, 0.1, false, {{"loss", 0.7}, {"lr", 1e-5}}}, 9, 0),
            "step 1/9 | epoch 0.10 | loss 0.7000 | lr 1.00e-05");
}

TEST(Progress, HasUnitsAndOnlyFiniteValues) {
  EXPECT_EQ(progress_line({1, 0.1, false, {{"loss", -NAN}, {"communication", 0.072}}}, 9, 0),
            "step 1/9 | epoch 0.10 | communication 7 %");
}

TEST(Progress, TheLiveLineFitsItsTerminal) {
  const Record record = {120,
                         0.114,
                         false,
                         {{"loss", 0.41234},
                          {"lr", 4.8e-5},
                          {"samples_per_second", 212.3},
                          {"tokens_per_second", 2840.4},
                          {"communication", 0.07}}};
  const std::pair<std::string, double> metric = {"accuracy", 0.8125};
  EXPECT_EQ(
      live_line(record, 1053, 93, 200, metric),
      " 11 % [##----------------------] 120/1053 | loss 0.4123 | eval_accuracy 0.8125 | ETA 1m 33s | 212.3 samples/s | communication 7 % | lr 4.80e-05 | epoch 0.11 | 2,840 tokens/s");
  EXPECT_EQ(live_line(record, 1053, 93, 80, metric),
            " 11 % [#-----------] 120/1053 | loss 0.4123 | eval_accuracy 0.8125 | ETA 1m 33s");
  EXPECT_EQ(live_line(record, 1053, 93, 80),
            " 11 % [#----------------] 120/1053 | loss 0.4123 | ETA 1m 33s | 212.3 samples/s");
  EXPECT_EQ(live_line(record, 1053, 93, 45), " 11 % [#------------] 120/1053 | loss 0.4123");
  for (int columns = 0; columns < 200; ++columns) {
    EXPECT_LE(std::ssize(live_line(record, 1053, 93, columns, metric)), std::max(0, columns - 1)) << columns;
  }
  EXPECT_EQ(live_line({9, 1, false, {}}, 9, 0, 80), "100 % [########################] 9/9 | epoch 1.00");
}

TEST(Progress, ItLogsLinesWithoutRedraws) {
  EXPECT_EQ(Progress::choose(/*redraws=*/false), Progress::Mode::lines);
}

// A file of records without their times, which vary.
std::string without_times(const std::filesystem::path& file) {
  return std::regex_replace(read_file(file), std::regex(",\"time\":[0-9.]+"), "");
}

class MetricsLogTest : public ::testing::Test {
 protected:
  MetricsLogTest() {
    MetricsLog log(path_);
    log.begin({0, 9, ""});
    log.write({1, 0.25, false, {{"loss", 0.5}}});
    log.write({2, 0.5, false, {{"loss", -std::nan("")}}});
    log.write({2, 0.5, true, {{"f1", 0.75}}});
  }
  const TempFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "metrics.jsonl";
};

TEST_F(MetricsLogTest, WritesOneObjectPerLine) {
  EXPECT_EQ(without_times(path_),
            "{\"step\":1,\"epoch\":0.25,\"loss\":0.5}\n{\"step\":2,\"epoch\":0.5,\"loss\":\"nan\"}\n"
            "{\"step\":2,\"epoch\":0.5,\"eval_f1\":0.75}\n");
}

TEST_F(MetricsLogTest, RecordsCarryTheirTime) {
  const nlohmann::json record =
      nlohmann::json::parse(read_file(path_).substr(0, read_file(path_).find('\n')));
  EXPECT_NEAR(record.at("time").get<double>(), seconds_since_1970(), 600);
}

TEST_F(MetricsLogTest, ResumingRemovesLaterSteps) {
  AppendFile(path_).write("{\"step\":3,\"ep");  // a truncated record
  MetricsLog log(path_);
  log.begin({1, 9, ""});
  log.write({2, 0.5, false, {{"loss", 0.25}}});
  EXPECT_EQ(without_times(path_),
            "{\"step\":1,\"epoch\":0.25,\"loss\":0.5}\n{\"step\":2,\"epoch\":0.5,\"loss\":0.25}\n");
}

TEST_F(MetricsLogTest, AFullDiskAtTheBeginLosesOnlyTheRecordsOfThatTime) {
  MetricsLog log(path_);
  {
    const file_faults::Injection full({.call = 1, .error = ENOSPC});
    EXPECT_THROW(log.begin({1, 9, ""}), IoError);
  }
  log.write({2, 0.5, false, {{"loss", 0.25}}});
  EXPECT_EQ(without_times(path_),
            "{\"step\":1,\"epoch\":0.25,\"loss\":0.5}\n{\"step\":2,\"epoch\":0.5,\"loss\":0.25}\n");
}

TEST_F(MetricsLogTest, ANewRunBeginsANewFile) {
  MetricsLog(path_).begin({0, 9, ""});
  EXPECT_EQ(read_file(path_), "");
}

// A run that returns to an earlier step records its texts once.
TEST(TextLog, TextsOfLaterStepsAreDiscarded) {
  const TempFolder folder;
  const auto path = folder.path() / "texts.jsonl";
  TextLog log(path);
  log.begin({0, 9, ""});
  EXPECT_FALSE(std::filesystem::exists(path));
  log.write_text(1, "a", "x\n\xff");
  log.write_text(2, "a", "y");
  log.begin({1, 9, ""});
  log.write_text(2, "a", "z");
  EXPECT_EQ(
      read_file(path),
      "{\"step\":1,\"name\":\"a\",\"text\":\"x\\n\uFFFD\"}\n{\"step\":2,\"name\":\"a\",\"text\":\"z\"}\n");
  log.begin({0, 9, ""});
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace stretto::track
