#include "stretto/track/mlflow.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/mlflow_double.h"
#include "stretto/track/mlflow_sender.h"
#include "stretto/track/status_file.h"
#include "stretto/track/trackers.h"

namespace stretto::track {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

// Sets or (nullptr) unsets a variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

class MlflowTest : public ::testing::Test {
 protected:
  MlflowTest() {
    log::set_output([this](std::string_view line) {
      const std::lock_guard guard(mutex_);
      logged_.append(line).append("\n");
    });
  }
  ~MlflowTest() override { log::set_output({}); }

  std::string logged() const {
    const std::lock_guard guard(mutex_);
    return logged_;
  }

  // A run with track.trackers: [mlflow]; calls the trackers like the Trainer.
  struct Run {
    Run(const MlflowTest& test, const MlflowOptions& options) {
      trackers.add(std::make_shared<StatusFile>(options.folder / "progress.json"));
      trackers.add(std::make_shared<MetricsLog>(options.folder / "metrics.jsonl"));
      trackers.add(std::make_shared<Mlflow>(options));
      write_file_atomic(options.folder / "config.yaml", test.config);
    }
    void begin(int64_t steps_done = 0) { trackers.begin({steps_done, 9, "", {}}); }
    void write(int64_t step, double loss) { trackers.write({step, 0.5, false, {{"loss", loss}, {"lr", 1}}}); }

    Trackers trackers;
  };

  MlflowOptions options(const std::string& uri) const {
    return {.folder = folder_.path(),
            .uri = uri,
            .first_retry = std::chrono::milliseconds(10),
            .last_retry = std::chrono::milliseconds(40)};
  }

  // Sends the remaining records, like `stretto track sync`.
  void sync() const {
    MlflowSender sender(folder_.path());
    while (sender.send_next()) {
    }
  }

  const std::string config =
      "optimizer:\n  lr: 0.5\ntrack:\n  experiment: reviews\n  run_name: first\n  tags: [\"team=nlp\", \"a=b=c\"]\noutput: runs/x\n";
  const TempFolder folder_;
  const Variable no_proxy_{"no_proxy", "127.0.0.1"};
  mutable std::mutex mutex_;
  std::string logged_;
};

TEST_F(MlflowTest, RecordsARun) {
  MlflowDouble server;
  {
    Run run(*this, options(server.url()));
    run.begin();
    run.write(1, 0.75);
    run.trackers.write({1, 0.5, true, {{"f1@macro", NAN}}});
    run.write(2, INFINITY);
    write_file_atomic(folder_.path() / "notes.txt", "good");
    run.trackers.write_artifact(folder_.path() / "notes.txt");
    run.trackers.end(RunEnd::finished);
  }
  const MlflowDouble::Run sent = server.only_run();
  EXPECT_EQ(sent.name, "first");
  EXPECT_EQ(sent.status, "FINISHED");
  EXPECT_THAT(sent.params, AllOf(Contains(Pair("optimizer.lr", "0.5")), Contains(Pair("output", "runs/x")),
                                 Contains(Pair("track.tags", "[team=nlp, a=b=c]"))));
  EXPECT_THAT(sent.tags, AllOf(Contains(Pair("team", "nlp")), Contains(Pair("a", "b=c"))));
  EXPECT_THAT(sent.artifacts, ElementsAre(Pair("config.yaml", config), Pair("notes.txt", "good")));
  EXPECT_THAT(MlflowDouble::steps(sent, "train/loss"), ElementsAre(1, 2));
  EXPECT_THAT(MlflowDouble::steps(sent, "eval/f1_macro"), ElementsAre(1));
  std::vector<std::string> values;
  for (const auto& [key, step, time, value] : sent.metrics) {
    if (key == "train/loss" || key == "eval/f1_macro") values.push_back(value);
  }
  EXPECT_THAT(values, ElementsAre("\"NaN\"", "0.75", "\"Infinity\""));
  EXPECT_THAT(logged(), IsEmpty());
}

TEST_F(MlflowTest, AServerThatFailsGetsEverythingOnce) {
  MlflowDouble server;
  server.fail(4, 503, /*lose=*/true);  // replies are lost: each request is carried out, and sent again
  {
    Run run(*this, options(server.url()));
    run.begin();
    for (int64_t step = 1; step <= 5; ++step) run.write(step, 1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (MlflowDouble::steps(server.only_run(), "train/loss").size() < 5 &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    run.trackers.end(RunEnd::finished);
  }
  const MlflowDouble::Run sent = server.only_run();
  EXPECT_EQ(sent.status, "FINISHED");
  EXPECT_THAT(MlflowDouble::steps(sent, "train/loss"), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(logged(), AllOf(HasSubstr("HTTP 503 busy; training continues"), HasSubstr("answers again")));
  EXPECT_EQ(logged().find("training continues"), logged().rfind("training continues")) << logged();
}

TEST_F(MlflowTest, ADeadServerCausesAWarningAndSyncSendsTheValuesLater) {
  int port = 0;
  { port = MlflowDouble().port(); }
  const std::string url = fmt::format("http://127.0.0.1:{}", port);
  {
    Run run(*this, options(url));
    run.begin();
    run.write(1, 1);
    run.trackers.end(RunEnd::failed);
  }
  EXPECT_THAT(logged(), HasSubstr("did not receive the last 2 records; send them later: stretto track sync"));
  EXPECT_THROW(sync(), MlflowError);
  const MlflowDouble server(port);
  sync();
  sync();
  EXPECT_EQ(server.only_run().status, "FAILED");
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1));
}

TEST_F(MlflowTest, AServerThatNeverAnswersDelaysTheEndByTheTimeoutAtMost) {
  MlflowDouble server;
  server.stall();
  MlflowOptions given = options(server.url());
  given.patience = std::chrono::milliseconds(50);
  Run run(*this, given);
  run.begin();
  for (int64_t step = 1; step <= 100; ++step) run.write(step, 1);
  run.trackers.write_artifact(folder_.path() / "notes.txt");
  run.trackers.end(RunEnd::finished);  // returns
  EXPECT_THAT(logged(), HasSubstr("did not receive the last 102 records"));
}

TEST_F(MlflowTest, AResumedRunContinuesWithoutRepeatingSteps) {
  const MlflowDouble server;
  {
    Run run(*this, options(server.url()));
    run.begin();
    for (int64_t step = 1; step <= 3; ++step) run.write(step, 1);
    run.trackers.end(RunEnd::stopped);
  }
  EXPECT_EQ(server.only_run().status, "KILLED");
  AppendFile(folder_.path() / "metrics.jsonl").write("{\"st");  // truncated by a crash
  {
    Run run(*this, options(server.url()));
    run.begin(2);
    for (int64_t step = 3; step <= 4; ++step) run.write(step, 1);
    run.trackers.begin({3, 9, "", {}});  // returns to a checkpoint
    for (int64_t step = 4; step <= 5; ++step) run.write(step, 1);
    run.trackers.end(RunEnd::finished);
  }
  EXPECT_EQ(server.only_run().status, "FINISHED");
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(MlflowTest, ATrackerThatBeginsAgainAlsoTriesAgain) {
  MlflowDouble server;
  Run run(*this, options(server.url()));
  run.begin();
  run.write(1, 1);
  run.trackers.end(RunEnd::stopped);
  server.fail(2, 503);
  run.begin(1);
  run.write(2, 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (MlflowDouble::steps(server.only_run(), "train/loss").size() < 2 &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1, 2));
  run.trackers.end(RunEnd::finished);
}

TEST_F(MlflowTest, ANewRunInTheFolderIsANewRunOnTheServer) {
  const MlflowDouble server;
  for (int i = 0; i < 2; ++i) {
    Run run(*this, options(server.url()));
    run.begin();
    run.write(1, 1);
    run.trackers.end(RunEnd::finished);
  }
  EXPECT_EQ(server.runs().size(), 2u);
}

TEST_F(MlflowTest, ARunThatFailsBeforeItsFirstStepWritesNothing) {
  Run(*this, options("http://127.0.0.1:1")).trackers.end(RunEnd::failed);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "mlflow"));
  EXPECT_THAT(logged(), IsEmpty());
}

TEST_F(MlflowTest, ARunWithoutMlflowIsSentLater) {
  const MlflowDouble server;
  write_file_atomic(folder_.path() / "config.yaml", "output: runs/old\n");
  // The format of version 0.1, whose records have no time.
  write_file_atomic(folder_.path() / "metrics.jsonl",
                    "{\"step\":1,\"epoch\":1,\"loss\":0.5}\n{\"step\":1,\"epoch\":1,\"eval_f1\":1}\n");
  EXPECT_THAT(message_of<ConfigError>([&] { MlflowSender{folder_.path()}; }),
              HasSubstr("pass its URL with --uri"));
  const Fd lock = lock_mlflow(folder_.path());
  for (int i = 0; i < 2; ++i) {
    MlflowSender sender(folder_.path(), server.url());
    while (sender.send_next()) {
    }
    EXPECT_EQ(sender.records_sent(), i == 0 ? 2 : 0);
  }
  EXPECT_EQ(server.only_run().name, "old");
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1));
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "eval/f1"), ElementsAre(1));
}

TEST_F(MlflowTest, ManyValuesAreSentInFewRequests) {
  const MlflowDouble server;
  {
    Run run(*this, options("http://127.0.0.1:1"));
    run.begin();
    for (int64_t step = 1; step <= 1200; ++step) run.write(step, 1);
    run.trackers.end(RunEnd::finished);
  }
  MlflowSender sender(folder_.path(), server.url());
  while (sender.send_next()) {
  }
  EXPECT_EQ(MlflowDouble::steps(server.only_run(), "train/loss").size(), 1200u);
  EXPECT_EQ(std::ranges::count(server.requests(), "POST /api/2.0/mlflow/runs/log-batch"), 1 + 4);
}

TEST_F(MlflowTest, CredentialsComeFromTheEnvironment) {
  MlflowDouble server;
  server.require_authorization("Basic YW5uYTpzZWNyZXQ=");
  Run run(*this, options(server.url()));
  run.begin();
  run.trackers.end(RunEnd::finished);
  EXPECT_THAT(logged(), HasSubstr("HTTP 401 You are not authenticated; set MLFLOW_TRACKING_USERNAME"));
  {
    const Variable user("MLFLOW_TRACKING_USERNAME", "anna"), password("MLFLOW_TRACKING_PASSWORD", "secret");
    sync();
  }
  EXPECT_EQ(server.only_run().status, "FINISHED");
  server.require_authorization("Bearer abc");
  const Variable token("MLFLOW_TRACKING_TOKEN", "abc");
  EXPECT_EQ(MlflowServer(server.url()).find_or_create_experiment("reviews"), "1");
}

TEST_F(MlflowTest, DataThatTheServerRejectsAreSkipped) {
  MlflowDouble server;
  {
    Run run(*this, options(server.url()));
    run.begin();
    run.trackers.end(RunEnd::stopped);
  }
  MetricsLog log(folder_.path() / "metrics.jsonl");
  log.begin({0, 9, ""});
  log.write({1, 0.5, false, {{"loss", 1}}});
  server.fail(1, 400);
  sync();
  EXPECT_THAT(logged(), HasSubstr("HTTP 400 busy; skipped"));
  log.write({2, 0.5, false, {{"loss", 1}}});
  sync();
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(2));
}

TEST_F(MlflowTest, ADamagedProgressFileIsRefused) {
  make_folders(folder_.path() / "mlflow");
  write_file_atomic(folder_.path() / "mlflow" / "sent.json", "{\"position\": 9}");
  EXPECT_THAT(message_of<DataError>([&] { MlflowSender{folder_.path()}; }),
              HasSubstr("remove it to send everything to a new run"));
}

TEST_F(MlflowTest, AnotherProgramsServerIsNamed) {
  const MlflowDouble server;
  EXPECT_THAT(
      message_of<MlflowError>([&] { MlflowServer(server.url() + "/wiki").find_or_create_experiment("x"); }),
      HasSubstr("this is not an MLflow server's address"));
}

TEST_F(MlflowTest, TheUrlIsCheckedBeforeAnythingStarts) {
  const auto message = [](const std::string& uri) -> std::string {
    try {
      check_mlflow({.folder = "run", .logging_dir = uri});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("https://host/mlflow"), "");
  EXPECT_THAT(message("http://anna:secret@host"),
              AllOf(HasSubstr("set MLFLOW_TRACKING_USERNAME"), Not(HasSubstr("secret@"))));
  EXPECT_THAT(message("sqlite:///x.db"), HasSubstr("track.logging_dir: sqlite:///x.db is not the URL"));
  EXPECT_THAT(message("http://"), HasSubstr("names no host"));
  EXPECT_THAT(message("logs"), HasSubstr("mlflow needs the URL of a server"));
  const Variable uri("MLFLOW_TRACKING_URI", "databricks");
  EXPECT_THAT(message("logs"), HasSubstr("MLFLOW_TRACKING_URI: databricks is not the URL"));
}

}  // namespace
}  // namespace stretto::track
