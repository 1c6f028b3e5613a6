#include "stretto/track/mlflow.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/temp_folder.h"
#include "stretto/track/mlflow_double.h"
#include "stretto/track/mlflow_sender.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

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

  MlflowOptions options(const std::string& uri) const {
    return {.folder = folder_.path(),
            .uri = uri,
            .experiment = "reviews",
            .run_name = "first",
            .tags = {{"team", "nlp"}},
            .first_retry = std::chrono::milliseconds(10),
            .last_retry = std::chrono::milliseconds(40)};
  }

  static TrackedRun run(int64_t steps_done = 0) {
    return {steps_done, 9, "lr: 1\n", {{"optimizer.lr", 0.5}, {"model.path", nullptr}, {"task", "x"}}};
  }

  static Record record(int64_t step, double loss) { return {step, 0.5, false, {{"loss", loss}}}; }

  // Sends what is left, as `stretto track sync` does.
  void sync() const {
    MlflowSender sender(folder_.path());
    while (sender.send_next()) {
    }
  }

  const TempFolder folder_;
  const Variable no_proxy_{"no_proxy", "127.0.0.1"};
  mutable std::mutex mutex_;
  std::string logged_;
};

TEST_F(MlflowTest, RecordsARun) {
  MlflowDouble server;
  write_file_atomic(folder_.path() / "config.yaml", "lr: 0.5\n");
  {
    Mlflow tracker(options(server.url()));
    tracker.begin(run());
    tracker.write(record(1, 0.75));
    tracker.write({1, 0.5, true, {{"f1@macro", NAN}}});
    tracker.write(record(2, INFINITY));
    tracker.end(RunEnd::finished);
  }
  const MlflowDouble::Run sent = server.only_run();
  EXPECT_EQ(sent.name, "first");
  EXPECT_EQ(sent.status, "FINISHED");
  EXPECT_THAT(sent.params, ElementsAre(Pair("optimizer.lr", "0.5"), Pair("task", "x")));
  EXPECT_THAT(sent.tags, Contains(Pair("team", "nlp")));
  EXPECT_THAT(sent.artifacts, ElementsAre(Pair("config.yaml", "lr: 0.5\n")));
  EXPECT_THAT(MlflowDouble::steps(sent, "train/loss"), ElementsAre(1, 2));
  EXPECT_THAT(MlflowDouble::steps(sent, "eval/f1_macro"), ElementsAre(1));
  std::vector<std::string> values;
  for (const auto& [key, step, time, value] : sent.metrics) {
    if (key != "train/epoch" && key != "eval/epoch") values.push_back(value);
  }
  EXPECT_THAT(values, ElementsAre("\"NaN\"", "0.75", "\"Infinity\""));
  EXPECT_THAT(logged(), IsEmpty());
}

TEST_F(MlflowTest, AServerThatFailsGetsEverythingOnce) {
  MlflowDouble server;
  server.fail(4, 503, /*lose=*/true);  // replies are lost: each request is carried out, and sent again
  {
    Mlflow tracker(options(server.url()));
    tracker.begin(run());
    for (int64_t step = 1; step <= 5; ++step) tracker.write(record(step, 1));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (MlflowDouble::steps(server.only_run(), "train/loss").size() < 5 &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    tracker.end(RunEnd::finished);
  }
  const MlflowDouble::Run sent = server.only_run();
  EXPECT_EQ(sent.status, "FINISHED");
  EXPECT_THAT(MlflowDouble::steps(sent, "train/loss"), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(logged(), AllOf(HasSubstr("HTTP 503 busy; training continues"), HasSubstr("answers again")));
  EXPECT_EQ(logged().find("training continues"), logged().rfind("training continues")) << logged();
}

TEST_F(MlflowTest, ADeadServerCostsAWarningAndSyncSendsTheValuesLater) {
  int port = 0;
  { port = MlflowDouble().port(); }
  const std::string url = fmt::format("http://127.0.0.1:{}", port);
  {
    Mlflow tracker(options(url));
    tracker.begin(run());
    tracker.write(record(1, 1));
    tracker.end(RunEnd::failed);
  }
  EXPECT_THAT(logged(), HasSubstr("did not take the last 5 records; send them later: stretto track sync"));
  EXPECT_THROW(sync(), MlflowError);
  const MlflowDouble server(port);
  sync();
  sync();
  EXPECT_EQ(server.only_run().status, "FAILED");
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1));
}

TEST_F(MlflowTest, AServerThatNeverAnswersDelaysTheEndByNoMoreThanThePatience) {
  MlflowDouble server;
  server.stall();
  MlflowOptions given = options(server.url());
  given.patience = std::chrono::milliseconds(50);
  Mlflow tracker(given);
  tracker.begin(run());
  for (int64_t step = 1; step <= 100; ++step) tracker.write(record(step, 1));
  tracker.end(RunEnd::finished);  // returns
  EXPECT_THAT(logged(), HasSubstr("did not take the last"));
}

TEST_F(MlflowTest, AResumedRunGoesOnWithoutRepeatingSteps) {
  const MlflowDouble server;
  {
    Mlflow tracker(options(server.url()));
    tracker.begin(run());
    for (int64_t step = 1; step <= 3; ++step) tracker.write(record(step, 1));
    tracker.end(RunEnd::stopped);
  }
  EXPECT_EQ(server.only_run().status, "KILLED");
  AppendFile(folder_.path() / "mlflow" / "outbox.jsonl").write("{\"metr");  // cut short by a crash
  {
    Mlflow tracker(options(server.url()));
    tracker.begin(run(2));
    for (int64_t step = 3; step <= 4; ++step) tracker.write(record(step, 1));
    tracker.end(RunEnd::finished);
  }
  EXPECT_EQ(server.only_run().status, "FINISHED");
  EXPECT_THAT(MlflowDouble::steps(server.only_run(), "train/loss"), ElementsAre(1, 2, 3, 4));
}

TEST_F(MlflowTest, ANewRunInTheFolderIsANewRunOnTheServer) {
  const MlflowDouble server;
  for (int i = 0; i < 2; ++i) {
    Mlflow tracker(options(server.url()));
    tracker.begin(run());
    tracker.write(record(1, 1));
    tracker.end(RunEnd::finished);
  }
  EXPECT_EQ(server.runs().size(), 2u);
}

TEST_F(MlflowTest, ManyValuesAreSentInFewRequests) {
  const MlflowDouble server;
  {
    Mlflow tracker(options("http://127.0.0.1:1"));
    tracker.begin(run());
    for (int64_t step = 1; step <= 1200; ++step) tracker.write(record(step, 1));
    tracker.end(RunEnd::finished);
  }
  MlflowSender sender(folder_.path(), server.url());
  while (sender.send_next()) {
  }
  EXPECT_EQ(MlflowDouble::steps(server.only_run(), "train/loss").size(), 1200u);
  EXPECT_EQ(std::ranges::count(server.requests(), "POST /api/2.0/mlflow/runs/log-batch"), 1 + 3);
}

TEST_F(MlflowTest, CredentialsComeFromTheEnvironment) {
  MlflowDouble server;
  server.require_authorization("Basic YW5uYTpzZWNyZXQ=");
  Mlflow tracker(options(server.url()));
  tracker.begin(run());
  tracker.end(RunEnd::finished);
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

TEST_F(MlflowTest, WhatTheServerRefusesIsLeftOut) {
  const MlflowDouble server;
  {
    Mlflow tracker(options(server.url()));
    tracker.begin(run());
    tracker.end(RunEnd::finished);
  }
  AppendFile(folder_.path() / "mlflow" / "outbox.jsonl").write("{\"params\":{\"task\":\"other\"}}\n");
  MlflowSender sender(folder_.path());
  EXPECT_THROW(sender.send_next(), MlflowError);
  EXPECT_FALSE(sender.send_next());
  EXPECT_THAT(server.only_run().params, Contains(Pair("task", "x")));
}

TEST_F(MlflowTest, AnotherProgramsServerIsNamed) {
  const MlflowDouble server;
  try {
    MlflowServer(server.url() + "/wiki").find_or_create_experiment("x");
    FAIL();
  } catch (const MlflowError& error) {
    EXPECT_THAT(error.what(), HasSubstr("this is not an MLflow server's address"));
  }
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
}  // namespace stretto
