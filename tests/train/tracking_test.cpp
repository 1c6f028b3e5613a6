#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/track/mlflow_double.h"

// Tests the trackers of whole runs.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Pair;

constexpr const char* every_step = "track.log_every=1 training.max_steps=4 evaluate.every=never ";

struct Tracking : ::testing::Test {
  Tracking() { ::setenv("no_proxy", "127.0.0.1", 1); }
};

TEST_F(Tracking, SeveralTrackersGetTheSameValues) {
  const Workspace workspace;
  const track::MlflowDouble server;
  workspace.train(
      "run", 2,
      every_step + fmt::format("track.trackers=[jsonl,csv,tensorboard,mlflow] track.logging_dir={} "
                               "track.experiment=reviews track.run_name=first track.tags=[team=nlp]",
                               server.url()));
  const track::MlflowDouble::Run run = server.only_run();
  EXPECT_EQ(run.name, "first");
  EXPECT_EQ(run.status, "FINISHED");
  EXPECT_THAT(run.tags, Contains(Pair("team", "nlp")));
  EXPECT_THAT(run.params, Contains(Pair("training.max_steps", "4")));
  EXPECT_THAT(run.artifacts, AllOf(Contains(Key("config.yaml")), Contains(Key("training_0.log"))));
  EXPECT_THAT(track::MlflowDouble::steps(run, "train/loss"), ElementsAre(1, 2, 3, 4));
  std::vector<double> losses;
  for (const auto& [key, step, time, value] : run.metrics) {
    if (key == "train/loss") losses.push_back(parse_double(value).value());
  }
  EXPECT_EQ(losses, workspace.losses("run"));
  const std::string csv = workspace.read("run/metrics.csv");
  const auto rows = split(csv, '\n');
  ASSERT_EQ(rows.size(), 6u) << csv;
  EXPECT_THAT(std::string(rows[0]), HasSubstr("step,epoch,loss,grad_norm,lr"));
  EXPECT_EQ(parse_double(split(rows[4], ',')[2]), losses[3]);
}

TEST_F(Tracking, ValuesAreThoseOfAllRanks) {
  const Workspace workspace;
  workspace.train("run", 2, every_step);
  for (const nlohmann::json& record : workspace.metrics("run")) {
    EXPECT_GE(record.at("rank_imbalance"), 1);
    EXPECT_GT(record.at("memory_mib"), 1);
    EXPECT_GE(record.at("communication"), 0);
    EXPECT_LE(record.at("communication"), 1);
  }
  const nlohmann::json status = nlohmann::json::parse(workspace.read("run/progress.json"));
  EXPECT_EQ(status.at("state"), "finished");
  EXPECT_EQ(status.at("step"), 4);
  const ShellResult top = shell(std::string(STRETTO_PROGRAM) + " top " + workspace.path("run"));
  EXPECT_THAT(top.out, HasSubstr("finished 4/4 (100 %), loss "));
}

TEST_F(Tracking, AServerThatIsDeadAtTheStartGetsTheRunLater) {
  const Workspace workspace;
  int port = 0;
  { port = track::MlflowDouble().port(); }
  const std::string url = fmt::format("http://127.0.0.1:{}", port);
  const ShellResult result =
      workspace.run("train", 2,
                    every_step + ("track.trackers=[jsonl,mlflow] track.logging_dir=" + url + " output=") +
                        workspace.path("run"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("training continues, the values are kept in"),
                                HasSubstr("send them later: stretto track sync")));
  const std::string sync = std::string(STRETTO_PROGRAM) + " track sync " + workspace.path("run");
  const ShellResult early = shell(sync);
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_THAT(early.err, HasSubstr(url));
  const track::MlflowDouble server(port);
  EXPECT_THAT(shell(sync).out, HasSubstr("sent 4 records to run run0 on " + url));
  EXPECT_THAT(shell(sync).out, HasSubstr("everything was sent before (run run0"));
  EXPECT_EQ(server.only_run().status, "FINISHED");
  EXPECT_THAT(track::MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1, 2, 3, 4));
}

TEST_F(Tracking, ARunThatWasKilledIsExportedAndSent) {
  const Workspace workspace;
  workspace.train("run", 1, every_step + std::string("track.trackers=[csv]"));
  std::filesystem::remove(workspace.path("run/metrics.csv"));
  const std::string program = STRETTO_PROGRAM;
  EXPECT_THAT(shell(program + " runs export " + workspace.path("run")).out, HasSubstr("run/metrics.csv\n"));
  EXPECT_EQ(std::ranges::count(workspace.read("run/metrics.csv"), '\n'), 5);
  const std::string sync = program + " track sync " + workspace.path("run");
  const ShellResult early = shell(sync);
  EXPECT_EQ(early.exit_code, 2);
  EXPECT_THAT(early.err, HasSubstr("pass its URL with --uri"));
  const track::MlflowDouble server;
  EXPECT_THAT(shell(sync + " --uri " + server.url()).out, HasSubstr("sent 4 records to run run0"));
  EXPECT_EQ(server.only_run().status, "FINISHED");
  EXPECT_THAT(server.only_run().params, Contains(Pair("training.max_steps", "4")));
}

TEST_F(Tracking, AResumedRunContinuesOnTheServer) {
  const Workspace workspace;
  const track::MlflowDouble server;
  const std::string settings =
      "track.log_every=1 evaluate.every=never checkpoint.every=2 training.max_steps=4 track.trackers=[jsonl,mlflow] track.logging_dir=" +
      server.url();
  workspace.run("train", 1, settings + " output=" + workspace.path("run") + " training.max_steps=3");
  workspace.train("run", 1, settings + " checkpoint.accept_changes=[training.max_steps]");
  EXPECT_EQ(server.runs().size(), 1u);
  EXPECT_EQ(server.only_run().status, "FINISHED");
  EXPECT_THAT(track::MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1, 2, 3, 4));
}

TEST_F(Tracking, AFullDiskWhileLoggingDoesNotEndTheRun) {
  const Workspace workspace;
  const ShellResult result =
      shell(with_file_fault("enospc@1+:path=metrics") +
            workspace.command("train", 2,
                              every_step + ("track.trackers=[jsonl,csv] output=" + workspace.path("run"))));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("metrics.jsonl"), HasSubstr("metrics.csv"),
                                HasSubstr("training continues, but this file will be incomplete")));
}

TEST_F(Tracking, TensorBoardGetsHistogramsOfWeightsAndGradients) {
  const Workspace workspace;
  for (const std::string strategy : {"ddp", "fsdp"}) {
    workspace.train(strategy, 2, every_step + ("track.histograms=2 training.strategy=" + strategy));
    std::string events;
    for (const auto& file : std::filesystem::directory_iterator(workspace.path(strategy + "/tensorboard")))
      events += workspace.read(strategy + "/tensorboard/" + file.path().filename().string());
    EXPECT_THAT(events, HasSubstr("weights/classifier.weight")) << strategy;
    EXPECT_THAT(events, HasSubstr("gradients/classifier.weight")) << strategy;
  }
}

TEST_F(Tracking, FilesGoToLoggingDir) {
  const Workspace workspace;
  workspace.train(
      "run", 1,
      every_step + ("track.trackers=[csv,tensorboard] track.logging_dir=" + workspace.path("logs")));
  EXPECT_TRUE(workspace.has("logs/run/metrics.csv"));
  EXPECT_TRUE(workspace.has("logs/run/tensorboard"));
  EXPECT_FALSE(workspace.has("run/metrics.csv"));
}

TEST_F(Tracking, MistakesAreReportedBeforeTheStart) {
  const Workspace workspace;
  const auto message = [&](const std::string& settings) {
    const ShellResult result = workspace.run("train", 1, settings);
    EXPECT_EQ(result.exit_code, 2) << settings;
    return result.err;
  };
  EXPECT_THAT(message("track.trackers=[wandb]"),
              has_all("\"wandb\"", "jsonl, csv, tensorboard, results, mlflow"));
  EXPECT_THAT(message("track.trackers=[mlflow]"), HasSubstr("mlflow needs the URL of a server"));
  EXPECT_THAT(message("track.logging_dir=http://localhost:5000"), HasSubstr("track.trackers has no mlflow"));
  EXPECT_THAT(message("track.histograms=10m"),
              has_all("track.histograms: 10m ", "steps (500) or epochs (2ep)"));
  EXPECT_THAT(message("track.histograms=1ep track.trackers=[csv]"),
              HasSubstr("only tensorboard shows histograms"));
  EXPECT_THAT(message("track.tags=[nlp]"), HasSubstr("\"nlp\" is not KEY=VALUE"));
  EXPECT_THAT(message("track.run_name=a/b"), HasSubstr("expected one without \"/\""));
}

}  // namespace
}  // namespace stretto
