#include "stretto/track/results_file.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::track {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ResultsFileTest : public ::testing::Test {
 protected:
  // "Loss@4": the name and the step of each measurement.
  std::vector<std::string> written() const {
    std::vector<std::string> names;
    const nlohmann::json content = read();
    for (const auto& metric : content["results"]["metrics"])
      names.push_back(fmt::format("{}@{}", metric.at("MetricName").get<std::string>(),
                                  metric.at("AdditionalData").at("Global step").get<int64_t>()));
    return names;
  }
  nlohmann::json read() const { return read_json(file_); }
  static void take(Tracker& tracker, int64_t step, double throughput) {
    const Record record = {
        step, static_cast<double>(step) / 4, false, {{"loss", 0.5}, {"samples_per_second", throughput}}};
    tracker.step(record);
    tracker.write(record);
  }

  const TempFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "results.json";
  TrackedRun run_ = {0, 8, "", {{"training.grad_accumulation_steps", 3}, {"training.seed", 7}}};
};

TEST_F(ResultsFileTest, HasTheLayoutOfNeuronxDistributedsScripts) {
  ResultsFile results(file_);
  results.begin(run_);
  for (int64_t step = 1; step <= 6; ++step) take(results, step, static_cast<double>(step));
  results.end(RunEnd::finished);
  EXPECT_THAT(written(), ElementsAre("Loss@4", "Throughput@4", "Final loss@6", "Time to train@6",
                                     "Average throughput@6", "Peak throughput@6"));
  const nlohmann::json content = read()["results"];
  EXPECT_EQ(content["parameters"],
            nlohmann::json({{"Total steps", 8}, {"Gradient accumulation microsteps", 3}, {"Seed", 7}}));
  const nlohmann::json throughput = content["metrics"][1], mean = content["metrics"][4];
  EXPECT_EQ(throughput["MeasuredValue"], 4);
  EXPECT_EQ(throughput["Units"], "seq/s");
  EXPECT_EQ(throughput["AdditionalData"],
            nlohmann::json({{"Epoch", 0}, {"Global step", 4}, {"Microstep", 12}}));
  EXPECT_THAT(throughput["Timestamp"].get<std::string>(),
              testing::MatchesRegex("....-..-..T..:..:..\\+00:00"));
  EXPECT_EQ(mean["MeasuredValue"], 3.5);
  EXPECT_EQ(mean["AdditionalData"]["Epoch"], 1);
  EXPECT_EQ(content["metrics"][5]["MeasuredValue"], 6);
}

TEST_F(ResultsFileTest, AMeanThroughputIsWithoutTheStepsThatFillTheWindow) {
  ResultsFile results(file_);
  results.begin(run_);
  for (int64_t step = 1; step <= 12; ++step) take(results, step, step <= 10 ? 100 : 2);
  results.end(RunEnd::stopped);
  const nlohmann::json metrics = read()["results"]["metrics"];
  EXPECT_EQ(metrics[metrics.size() - 2]["MeasuredValue"], 2);
}

TEST_F(ResultsFileTest, AResumedRunContinuesTheFileFromItsStep) {
  {
    ResultsFile results(file_);
    results.begin(run_);
    for (int64_t step = 1; step <= 5; ++step) take(results, step, 1);
    results.end(RunEnd::stopped);
  }
  run_.steps_done = 4;  // its checkpoint is from before the last step
  ResultsFile results(file_);
  results.begin(run_);
  for (int64_t step = 5; step <= 8; ++step) take(results, step, 1);
  results.end(RunEnd::finished);
  EXPECT_THAT(written(), ElementsAre("Loss@4", "Throughput@4", "Loss@8", "Throughput@8", "Final loss@8",
                                     "Time to train@8", "Average throughput@8", "Peak throughput@8"));
}

TEST_F(ResultsFileTest, AFailedRunHasNoFinalValuesAndANewRunNoneOfAnEarlierOne) {
  write_file_atomic(file_, R"({"results": {"metrics": [{"MetricName": "Loss"}]}})");
  ResultsFile results(file_);
  results.begin(run_);
  take(results, 1, NAN);
  results.end(RunEnd::failed);
  EXPECT_THAT(written(), ElementsAre());
}

TEST_F(ResultsFileTest, AnotherFileIsNotChanged) {
  write_file_atomic(file_, "{\"results\": 3}\n");
  EXPECT_THAT(message_of<IoError>([&] {
                add_measurements(file_, {{"Perplexity", 2, "", {}}});
              }),
              HasSubstr("results.json: expected"));
  EXPECT_EQ(read_file(file_), "{\"results\": 3}\n");
}

}  // namespace
}  // namespace stretto::track
