#include "stretto/report/run_data.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class RunDataTest : public ::testing::Test {
 protected:
  std::filesystem::path make_run(const std::string& name, const std::string& config) const {
    const std::filesystem::path folder = temp_.path() / name;
    make_folders(folder);
    write_file_atomic(folder / "config.yaml", config);
    write_file_atomic(
        folder / "metrics.jsonl",
        "{\"step\":10,\"epoch\":0.5,\"time\":9.5,\"loss\":0.75,\"lr\":0.1}\n{\"step\":20,\"epoch\":1,\"loss\":\"nan\"}\n"
        "not json\n[1]\n{\"step\":20,\"epoch\":1,\"eval_f1\":0.5}\n{\"step\":30,\"lo");
    return folder;
  }
  const TempFolder temp_;
};

TEST_F(RunDataTest, ReadsExistingFiles) {
  const auto folder = make_run("a", "optimizer: {lr: 0.1}\ntrack:\n  tags: [x, y]\n");
  const RunData run = read_run(folder);
  EXPECT_EQ(run.name, "a");
  EXPECT_EQ(run.state, RunData::State::unfinished);
  EXPECT_EQ(run.steps(), 20);
  EXPECT_THAT(run.settings, ElementsAre(Pair("optimizer.lr", "0.1"), Pair("track.tags", "[x, y]")));
  EXPECT_THAT(metric_names({run}), ElementsAre("loss", "lr", "eval_f1"));
  EXPECT_EQ(run.metrics.at("loss")[0].value, 0.75);
  EXPECT_TRUE(std::isnan(*run.last("loss")));
  write_file_atomic(folder / "summary.json", "{}");
  EXPECT_EQ(read_run(folder).state, RunData::State::finished);
}

TEST_F(RunDataTest, ChartsCompareRunsAndShowEvaluations) {
  const RunData a = read_run(make_run("a", "x: 1\n")), b = read_run(make_run("b", "x: 1\n"));
  const Chart chart = chart_of({a, b}, "f1", /*by_epoch=*/true);
  ASSERT_EQ(chart.curves.size(), 2u);
  EXPECT_EQ(chart.curves[1].name, "b eval_f1");
  EXPECT_THAT(chart.curves[1].points, ElementsAre(Pair(1, 0.5)));
  EXPECT_EQ(chart_of({a}, "loss").curves[0].name, "loss");
}

TEST_F(RunDataTest, DifferencesNameUnsetSettings) {
  const RunData a = read_run(make_run("a", "x: 1\ny: 2\n")), b = read_run(make_run("b", "x: 1\nz: {u: 3}\n"));
  EXPECT_THAT(differences({a, b}),
              ElementsAre(Pair("y", ElementsAre("2", "unset")), Pair("z.u", ElementsAre("unset", "3"))));
}

TEST_F(RunDataTest, FindsRunsBelowAFolder) {
  make_run("b/c", "x: 1\n");
  make_run("a", "x: 1\n");
  for (const char* earlier : {"a/previous", "b/c/previous-1", "b/c/previous-2"}) make_run(earlier, "x: 1\n");
  make_folders(temp_.path() / "empty");
  EXPECT_THAT(find_runs(temp_.path()),
              ElementsAre(temp_.path() / "a", temp_.path() / "a/previous", temp_.path() / "b/c",
                          temp_.path() / "b/c/previous-1", temp_.path() / "b/c/previous-2"));
}

TEST_F(RunDataTest, RefusesOtherFolders) {
  EXPECT_THAT(message_of<ConfigError>([&] { read_run(temp_.path()); }),
              HasSubstr("is not the output folder of a run"));
  EXPECT_THAT(message_of<ConfigError>([&] { read_run(temp_.path() / "no"); }),
              HasSubstr("there is no folder"));
}

}  // namespace
}  // namespace stretto::report
