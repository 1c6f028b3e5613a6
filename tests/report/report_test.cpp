#include <chrono>

#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Reports : public ::testing::Test {
 protected:
  // A finished run of 40 steps with a falling loss.
  void make_run(const std::string& name, double lr) const {
    const std::filesystem::path folder = temp_.path() / name;
    make_folders(folder);
    write_file_atomic(
        folder / "config.yaml",
        fmt::format("optimizer:\n  lr: {}\ncheckpoint:\n  monitor: accuracy\noutput: {}\n", lr, name));
    std::string metrics;
    for (int step = 10; step <= 40; step += 10)
      metrics += fmt::format("{{\"step\":{},\"epoch\":{},\"loss\":{},\"lr\":{}}}\n", step, step / 40.0,
                             1.0 / step, lr);
    write_file_atomic(folder / "metrics.jsonl",
                      metrics + "{\"step\":40,\"epoch\":1,\"eval_accuracy\":0.75}\n");
    write_file_atomic(folder / "summary.json",
                      "{\"steps\": 40, \"seconds\": 93, \"samples_per_second\": 212.3, \"ranks\": 2}");
    write_file_atomic(folder / "dev_results.json", "{\"accuracy\": 0.75}");
  }

  ShellResult stretto(const std::string& arguments) const {
    return shell("cd " + temp_.path().string() + " && " + STRETTO_PROGRAM + " " + arguments);
  }
  std::string refusal(const std::string& arguments) const {
    const ShellResult result = stretto(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    return result.err;
  }

  const TempFolder temp_;
};

TEST_F(Reports, RunsListsComparesAndDiffs) {
  make_run("runs/a", 0.1);
  make_run("runs/b", 0.2);
  EXPECT_EQ(stretto("runs list").out,
            "run     state     steps   loss  best           samples/s    time\n"
            "runs/a  finished     40  0.025  accuracy 0.75      212.3  1m 33s\n"
            "runs/b  finished     40  0.025  accuracy 0.75      212.3  1m 33s\n");
  EXPECT_EQ(stretto("runs diff runs/a runs/b").out,
            "setting       runs/a  runs/b\noptimizer.lr  0.1     0.2\noutput        runs/a  runs/b\n");
  EXPECT_THAT(stretto("runs compare runs/a runs/b").out,
              AllOf(HasSubstr("last eval_accuracy"), HasSubstr("best accuracy"), HasSubstr("optimizer.lr")));
  const auto json = nlohmann::json::parse(stretto("runs list --json runs").out);
  EXPECT_EQ(json.at(1).at("last").at("loss"), 0.025);
  EXPECT_EQ(stretto("runs diff runs/a runs/a").out, "all settings are equal\n");
}

TEST_F(Reports, RunsExportsValues) {
  make_run("runs/a", 0.5);
  EXPECT_EQ(stretto("runs export runs/a").out, "runs/a/metrics.csv\n");
  EXPECT_EQ(stretto("runs export runs/a -o values.csv").out, "values.csv\n");
  const std::string csv = read_file(temp_.path() / "values.csv");
  EXPECT_EQ(csv, read_file(temp_.path() / "runs/a/metrics.csv"));
  EXPECT_THAT(csv, AllOf(StartsWith("step,epoch,loss,lr,eval_accuracy\n10,0.25,0.1,0.5,\n"),
                         HasSubstr("\n40,1,,,0.75\n")));
  EXPECT_THAT(refusal("runs export runs"), HasSubstr("is not the output folder of a run"));
  EXPECT_THAT(refusal("runs export runs/a -o no/v.csv"), HasSubstr("cannot write no/v.csv: No such file"));
}

TEST_F(Reports, AFolderWithANameThatIsNotUtf8) {
  make_run("runs/\xff", 0.1);
  EXPECT_EQ(nlohmann::json::parse(stretto("runs list --json runs").out).at(0).at("folder"), "runs/\ufffd");
}

TEST_F(Reports, RunsRefusesOtherFolders) {
  EXPECT_THAT(refusal("runs list"), HasSubstr("there is no folder runs"));
  make_run("runs/a", 0.1);
  EXPECT_THAT(refusal("runs diff runs/a"), HasSubstr("run"));
  EXPECT_THAT(refusal("plot runs/a/config.yaml"), has_all("runs/a/config.yaml is a file", "output folder"));
  EXPECT_THAT(refusal("runs compare runs/a runs"), HasSubstr("runs is not the output folder of a run"));
  EXPECT_THAT(refusal("runs"), HasSubstr("expected one of list, compare, diff"));
}

TEST_F(Reports, PlotFitsEightyColumnsAndWritesSvg) {
  make_run("a", 0.1);
  make_run("b", 0.2);
  const std::string chart = stretto("plot a b --ascii").out;
  EXPECT_THAT(chart, AllOf(StartsWith("loss\n"), HasSubstr("* a  last 0.025  min 0.025  max 0.1")));
  for (const auto line : split(chart, '\n')) EXPECT_LE(line.size(), 80u);
  EXPECT_EQ(stretto("plot a --metric accuracy --svg curve.svg").out, "curve.svg\n");
  EXPECT_THAT(read_file(temp_.path() / "curve.svg"),
              AllOf(StartsWith("<svg "), HasSubstr("eval_accuracy: last 0.75")));
  EXPECT_THAT(refusal("plot a --metric los"),
              has_all("\"los\"", "did you mean \"loss\"?", "loss, lr, eval_accuracy"));
  EXPECT_THAT(refusal("plot a --rows 3"), HasSubstr("--rows"));
  EXPECT_THAT(refusal("plot a --svg no/a.svg"), HasSubstr("cannot write no/a.svg: No such file"));
}

TEST_F(Reports, PlotLrNeedsNeitherModelNorData) {
  write_file_atomic(
      temp_.path() / "r.yaml",
      "model: {path: nowhere}\ntraining: {max_steps: 4}\noptimizer: {lr: 1.0}\nscheduler: {warmup_ratio: 0.5}\n");
  EXPECT_EQ(stretto("plot-lr r.yaml --csv").out, "step,lr\n1,0\n2,0.5\n3,1\n4,0.5\n");
  EXPECT_THAT(refusal("plot-lr r.yaml scheduler.type=Constant"),
              HasSubstr("scheduler.warmup_ratio does not apply"));
  write_file_atomic(temp_.path() / "plain.yaml", "training: {max_steps: 4}\n");
  EXPECT_EQ(
      stretto("plot-lr plain.yaml --csv training.max_steps=2 --set optimizer.lr=2 scheduler.type=Constant")
          .out,
      "step,lr\n1,2\n2,2\n");
  EXPECT_THAT(
      stretto("plot-lr plain.yaml --csv scheduler.type=CyclicLR scheduler.base_lr=0.1 scheduler.max_lr=1")
          .out,
      StartsWith("step,lr,momentum\n1,0.1,0.9\n"));
  EXPECT_THAT(stretto("plot-lr r.yaml --ascii").out,
              AllOf(StartsWith("LinearWithWarmup, 4 steps\n"), HasSubstr("max 1")));
  EXPECT_THAT(stretto("plot-lr plain.yaml --ascii training.max_steps=1000000000").out,
              HasSubstr("1000000000 steps"));
  EXPECT_THAT(stretto("plot-lr plain.yaml --ascii training.max_steps=1").out,
              StartsWith("LinearWithWarmup, 1 step\n"));
  EXPECT_EQ(stretto("plot-lr r.yaml --svg lr.svg").out, "lr.svg\n");
}

TEST_F(Reports, PlotLrCountsStepsFromSamples) {
  write_file_atomic(temp_.path() / "r.yaml", "training: {epochs: 2, batch_size: 8}\n");
  EXPECT_THAT(stretto("plot-lr r.yaml --samples 33 -N 2 --ascii").out,
              StartsWith("LinearWithWarmup, 6 steps\n"));
  EXPECT_THAT(refusal("plot-lr r.yaml"), HasSubstr("give the number of training samples: --samples N"));
  EXPECT_THAT(refusal("plot-lr r.yaml scheduler.typ=x"), HasSubstr("did you mean \"type\"?"));
  EXPECT_THAT(refusal("plot-lr r.yaml --samples 33 scheduler.num_warmup_steps=0 scheduler.warmup_ratio=0.1"),
              HasSubstr("warm"));
}

// Writes a run that reported `age` seconds ago.
void write_status(const std::filesystem::path& folder, const std::string& state, int age) {
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const nlohmann::json status = {{"state", state},
                                 {"host", "here"},
                                 {"pid", 7},
                                 {"started", now - 99},
                                 {"updated", now - age},
                                 {"step", 20},
                                 {"total_steps", 40},
                                 {"epoch", 0.5},
                                 {"seconds_left", 93},
                                 {"values", {{"loss", 0.25}, {"communication", 0.07}}},
                                 {"evaluation", {{"accuracy", 0.75}, {"step", 10}}}};
  write_file_atomic(folder / "progress.json", status.dump());
}

TEST_F(Reports, TopShowsARunOnOneScreen) {
  make_run("a", 0.1);
  write_status(temp_.path() / "a", "training", 1);
  const std::string screen = stretto("top a --once --ascii").out;
  EXPECT_THAT(screen, AllOf(StartsWith("a: training (process 7 on here, "), HasSubstr(" 50 % [####"),
                            HasSubstr("step 20/40 | 1m 33s left\n"), HasSubstr("communication 7 %"),
                            HasSubstr("evaluation after step 10\n  accuracy 0.75\n"),
                            HasSubstr("* loss  last 0.025")));
  const auto lines = split(screen, '\n');
  EXPECT_LE(lines.size(), 25u);
  for (const auto line : lines) EXPECT_LE(line.size(), 80u);
}

TEST_F(Reports, TopEndsWithTheRun) {
  make_run("a", 0.1);
  write_status(temp_.path() / "a", "finished", 1);
  EXPECT_EQ(stretto("top a").out, "finished 20/40 (50 %), loss 0.25, accuracy 0.75, 1m 32s left\n");
  write_status(temp_.path() / "a", "training", 90);
  EXPECT_THAT(stretto("top a --once").out, HasSubstr("ended unexpectedly, 1m 30s ago"));
  EXPECT_EQ(stretto("top a").exit_code, 0);
}

TEST_F(Reports, TopRefusesOtherFolders) {
  EXPECT_THAT(refusal("top nowhere"), HasSubstr("there is no folder nowhere"));
  make_run("a", 0.1);
  EXPECT_THAT(refusal("top a"), HasSubstr("a holds no progress.json"));
  write_file_atomic(temp_.path() / "a/progress.json", "[");
  const ShellResult result = stretto("top a");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("a/progress.json:1:"));
}

// Opens a page in a browser and returns the document after its scripts have run; `size`: the size of the
// window.
std::string open_in_browser(const std::filesystem::path& page, const std::string& options = "") {
  const ShellResult result = shell(fmt::format(
      "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir={}.profile "
      "--virtual-time-budget=3000 --window-size=1000,900 {} --dump-dom file://{}",
      page.string(), options, page.string()));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

bool has_browser() { return shell("command -v chromium").exit_code == 0; }

TEST_F(Reports, ThePageWorksInABrowserAndRunsNoForeignScript) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed (Debian: apt-get install chromium)";
  make_run("a", 0.1);
  const std::string attack = "<img src=x onerror=document.title=1>";
  make_run(attack, 0.2);
  write_file_atomic(temp_.path() / attack / "predictions.jsonl",
                    nlohmann::json({{"line", 2},
                                    {"text", "</script><script>document.title=2</script>"},
                                    {"label", "<b>1</b>"},
                                    {"gold", "0"},
                                    {"score", 0.5}})
                        .dump());
  EXPECT_EQ(stretto("report a '" + attack + "' -o page.html").out, "page.html\n");
  const std::string document = open_in_browser(temp_.path() / "page.html");
  // The script has completed and has replaced the charts by its own, with a curve per run.
  EXPECT_THAT(document, AllOf(HasSubstr("data-ready=\"yes\""), HasSubstr("arrow keys read values"),
                              HasSubstr("stroke:var(--c0)"), HasSubstr("stroke:var(--c1)")));
  EXPECT_THAT(document,
              AllOf(HasSubstr("a, &lt;img src=x onerror=document.title=1&gt;: stretto report</title>"),
                    HasSubstr("&lt;/script&gt;"), ::testing::Not(HasSubstr("<img"))));
}

TEST_F(Reports, AReportIsWrittenIntoItsRun) {
  make_run("a", 0.1);
  EXPECT_EQ(stretto("report a").out, "a/report.html\n");
  EXPECT_THAT(read_file(temp_.path() / "a/report.html"), StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(refusal("report"), HasSubstr("run"));
  EXPECT_THAT(refusal("report nowhere"), HasSubstr("there is no folder nowhere"));
  EXPECT_THAT(refusal("report a -o no/such/folder.html"),
              HasSubstr("cannot write no/such/folder.html: No such"));
}

}  // namespace
}  // namespace stretto
