#include "stretto/track/trackers.h"

#include <cerrno>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/temp_folder.h"
#include "stretto/track/csv_log.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/registry.h"
#include "stretto/track/status_file.h"

namespace stretto::track {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TrackersTest, AFullDiskAndItsEndAreReportedOnce) {
  const TempFolder folder;
  std::string logged;
  log::set_output([&](std::string_view line) { logged.append(line).append("\n"); });
  Trackers trackers;
  trackers.add(std::make_shared<MetricsLog>(folder.path() / "metrics.jsonl"));
  trackers.begin({0, 9, ""});
  trackers.write({1, 0.1, false, {}});
  {
    const file_faults::Injection full({.call = 1, .error = ENOSPC, .sticky = true});
    trackers.write({2, 0.2, false, {}});
    trackers.write({3, 0.3, false, {}});
  }
  EXPECT_THAT(logged, HasSubstr("training continues, but this file will be incomplete"));
  EXPECT_EQ(logged.find("training continues"), logged.rfind("training continues"));
  trackers.write({4, 0.4, false, {}});
  log::set_output({});
  EXPECT_THAT(logged, HasSubstr("metrics.jsonl can be written again; 2 records are missing"));
  const std::string written = read_file(folder.path() / "metrics.jsonl");
  EXPECT_THAT(written, AllOf(StartsWith("{\"step\":1,"), HasSubstr("\n{\"step\":4,")));
  EXPECT_EQ(std::ranges::count(written, '\n'), 2);
}

// The trackers of a run with track.trackers: [csv].
class CsvLogTest : public ::testing::Test {
 protected:
  CsvLogTest() {
    trackers_.add(std::make_shared<MetricsLog>(folder_.path() / "metrics.jsonl"));
    trackers_.add(std::make_shared<CsvLog>(folder_.path() / "metrics.jsonl", csv_));
  }
  const TempFolder folder_;
  const std::filesystem::path csv_ = folder_.path() / "logs" / "metrics.csv";
  Trackers trackers_;
};

TEST_F(CsvLogTest, HasAColumnForEachValue) {
  trackers_.begin({0, 9, ""});
  trackers_.write({1, 0.25, false, {{"loss", 0.5}}});
  trackers_.write({1, 0.25, true, {{"f1, \"macro\"", 0.75}, {"total", 36}}});
  trackers_.write({2, 0.5, false, {{"loss", -NAN}, {"lr", 1e-5}}});
  trackers_.end(RunEnd::finished);
  EXPECT_EQ(
      read_file(csv_),
      "step,epoch,loss,\"eval_f1, \"\"macro\"\"\",eval_total,lr\n1,0.25,0.5,,,\n1,0.25,,0.75,36,\n2,0.5,nan,,,1e-05\n");
}

TEST_F(CsvLogTest, TheFileOfAnEarlierRunIsRemovedAtTheFirstStep) {
  make_folders(csv_.parent_path());
  write_file_atomic(csv_, "of an earlier run\n");
  trackers_.end(RunEnd::failed);  // before the first step
  EXPECT_EQ(read_file(csv_), "of an earlier run\n");
  trackers_.begin({0, 9, ""});
  EXPECT_FALSE(std::filesystem::exists(csv_));
}

nlohmann::json read_object(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_file(path));
}

TEST(StatusFileTest, ShowsTheStateOfARun) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "progress.json";
  StatusFile status(path);
  status.begin({3, 9, ""});
  EXPECT_EQ(read_object(path)["state"], "training");
  EXPECT_EQ(read_object(path)["step"], 3);
  status.step({4, 0.5, false, {{"loss", 0.5}}});
  status.step({5, 0.5, false, {{"loss", NAN}}});
  status.write({5, 0.5, true, {{"f1", 0.75}}});
  status.pause();
  const nlohmann::json now = read_object(path);
  EXPECT_EQ(now["state"], "waiting");
  EXPECT_EQ(now["step"], 5);
  EXPECT_EQ(now["values"]["loss"], "nan");
  EXPECT_EQ(now["evaluation"]["f1"], 0.75);
  EXPECT_GE(now["seconds_left"], 0);
  status.end(RunEnd::stopped);
  EXPECT_EQ(read_object(path)["state"], "stopped");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(StatusFileTest, ARunThatNeverBeganHasNone) {
  const TempFolder folder;
  StatusFile status(folder.path() / "progress.json");
  status.pause();
  status.end(RunEnd::failed);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "progress.json"));
  std::string logged;
  log::set_output([&](std::string_view line) { logged.append(line).append("\n"); });
  StatusFile elsewhere(folder.path() / "no" / "progress.json");
  elsewhere.begin({0, 9, ""});
  elsewhere.end(RunEnd::failed);
  log::set_output({});
  EXPECT_THAT(logged, HasSubstr("training continues, but stretto top shows an old state"));
  EXPECT_EQ(logged.find("warning"), logged.rfind("warning")) << logged;
}

TEST(TrackerSetupTest, FilesGoToLoggingDir) {
  EXPECT_EQ((TrackerSetup{.folder = "runs/a"}).files(), "runs/a");
  EXPECT_EQ((TrackerSetup{.folder = "runs/a/", .logging_dir = "logs"}).files(), "logs/a");
  EXPECT_EQ((TrackerSetup{.folder = "runs/a", .logging_dir = "logs", .run_name = "b"}).files(), "logs/b");
  EXPECT_EQ((TrackerSetup{.folder = "runs/a", .logging_dir = "http://host"}).files(), "runs/a");
}

TEST(TrackerRegistry, HasBundledNamesAndAcceptsOthers) {
  EXPECT_THAT(tracker_names(), ElementsAre("jsonl", "csv", "tensorboard", "results", "mlflow"));
  EXPECT_THROW(register_tracker({"csv", "", {}}), Error);
  EXPECT_THROW(find_tracker("wandb"), ConfigError);
}

}  // namespace
}  // namespace stretto::track
