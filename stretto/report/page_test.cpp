#include "stretto/report/page.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/report/samples.h"

namespace stretto::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* attack =
    "</script><script>document.title='attacked'</script><img src=x onerror=alert(1)>\"'&";

RunData run_named(const std::string& name) {
  RunData run;
  run.folder = run.name = name;
  run.config = "optimizer: {lr: 0.1}\n";
  for (int64_t step = 1; step <= 4; ++step) {
    run.metrics["loss"].push_back({step, 0.25 * static_cast<double>(step), 1.0 / static_cast<double>(step)});
    run.metrics["lr"].push_back({step, 0.25 * static_cast<double>(step), 0.1});
  }
  run.metrics["eval_f1"].push_back({4, 1, 0.75});
  run.dev_results = {{"f1", 0.75}};
  return run;
}

std::vector<std::string> titles(const std::vector<Chart>& charts) {
  std::vector<std::string> names;
  for (const Chart& chart : charts) names.push_back(chart.title);
  return names;
}

TEST(PageTest, ChartsOfTheTaskComeFirst) {
  RunData run = run_named("a");
  run.metrics["my_value"] = run.metrics["samples_per_second"] = run.metrics["loss"];
  EXPECT_THAT(titles(page_charts({run})),
              ElementsAre("loss", "f1", "my_value", "learning rate", "throughput (samples/s)"));
}

TEST(PageTest, TextsOfRunsAreNotMarkup) {
  const TempFolder folder;
  RunData run = run_named(attack);
  run.folder = folder.path();
  run.config = attack;
  run.settings["x"] = attack;
  run.metrics[attack] = run.metrics["loss"];
  run.dev_results[attack] = 1;
  write_file_atomic(
      folder.path() / "predictions.jsonl",
      nlohmann::json({{"line", 2}, {"text", attack}, {"label", attack}, {"gold", "b"}, {"score", 0.5}})
          .dump());
  make_folders(folder.path() / "logger_logs");
  write_file_atomic(
      folder.path() / "logger_logs" / "training_0.log",
      fmt::format("2026-11-22 13:02:54.739 ======== start of rank 0 (process 1) ========\n{}\n", attack));
  const std::string page = html_page({run, run_named("b")}, "1");
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("<img")), Not(HasSubstr("<script>document")), HasSubstr("&lt;img src=x")));
  size_t scripts = 0;
  for (size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 2u);
}

TEST(PageTest, LoadsNothing) {
  const std::string page = html_page({run_named("a")}, "1");
  EXPECT_THAT(page, AllOf(Not(HasSubstr("src=\"")), Not(HasSubstr("@import")), Not(HasSubstr("url(")),
                          HasSubstr("default-src 'none'")));
}

TEST(PageTest, LongCurvesAreThinnedButKeepTheirSpikes) {
  RunData run = run_named("a");
  run.metrics["loss"].clear();
  for (int64_t step = 1; step <= 100000; ++step)
    run.metrics["loss"].push_back({step, 0, step == 77777 ? 9.5 : 1.0});
  const std::string page = html_page({run}, "1");
  EXPECT_LT(page.size(), 200u << 10);
  EXPECT_THAT(page, HasSubstr("9.5"));
}

TEST(PageTest, TheResultsNameTheMetricOfTheBestModel) {
  RunData run = run_named("a"), by_loss = run_named("b");
  run.settings["checkpoint.monitor"] = "f1";
  run.summary = {{"best_epoch", 2}, {"best_step", 40}};
  run.dev_results = {{"f1", 0.75}, {"loss", 0.5}};
  run.metrics["eval_loss"] = {{2, 1, 0.25}, {4, 2, 0.5}, {6, 3, NAN}};
  by_loss.summary = {{"best_epoch", 1}};
  const std::string page = html_page({run, by_loss}, "1");
  const auto row = [](const std::string& name, const std::string& first, const std::string& second) {
    return fmt::format("<th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td>",
                       name, first, second);
  };
  EXPECT_THAT(page, HasSubstr(row("best model", "step 40, in epoch 2, by f1", "epoch 1, by loss")));
  EXPECT_THAT(page, HasSubstr(row("best model: loss", "0.5", "–")));
  EXPECT_THAT(page, HasSubstr(row("smallest evaluation loss", "0.25 (epoch 1)", "–")));
}

TEST(PageTest, ARunWithoutValuesHasAPage) {
  RunData run;
  run.name = "empty";
  EXPECT_THAT(html_page({run}, "1"), HasSubstr("No values were recorded yet."));
}

TEST(SamplesTest, WrongPredictionsComeFirstWithTheirTexts) {
  const TempFolder folder;
  RunData run = run_named("a");
  run.folder = folder.path();
  write_file_atomic(folder.path() / "test.tsv", "sentence\tlabel\nfine film\t1\ndull film\t0\n");
  run.settings["data.test"] = (folder.path() / "test.tsv").string();
  write_file_atomic(
      folder.path() / "predictions.jsonl",
      "{\"line\":2,\"label\":\"1\",\"score\":0.9,\"gold\":\"1\"}\n{\"line\":3,\"label\":\"1\",\"score\":0.6,\"gold\":\"0\"}\n"
      "{\"line\":9,\"label\":\"1\",\"score\":0.8,\"gold\":\"0\"}\nbroken");
  const Samples samples = read_samples(run, 9);
  EXPECT_EQ(samples.count, 3);
  EXPECT_EQ(samples.wrong, 2);
  EXPECT_THAT(samples.shown,
              ElementsAre(Field(&Samples::Sample::text, ""), Field(&Samples::Sample::text, "dull film\t0"),
                          Field(&Samples::Sample::text, "fine film\t1")));
}

TEST(SamplesTest, BothTextsOfAPairAreShown) {
  const TempFolder folder;
  RunData run = run_named("a");
  run.folder = folder.path();
  write_file_atomic(
      folder.path() / "predictions.jsonl",
      "{\"line\":2,\"label\":\"1\",\"score\":0.9,\"gold\":\"0\",\"text\":\"a film\",\"text_pair\":\"a "
      "<play>\"}\n");
  const Samples samples = read_samples(run, 9);
  ASSERT_EQ(samples.shown.size(), 1u);
  EXPECT_EQ(samples.shown[0].text, "a film\na <play>");
  EXPECT_THAT(html_page({run}, "1"), HasSubstr("<td class=\"text\">a film\na &lt;play&gt;</td>"));
}

TEST(SamplesTest, TheTextsOfTheLastEvaluationsAreShown) {
  const TempFolder folder;
  RunData run = run_named("a");
  run.folder = folder.path();
  EXPECT_TRUE(read_written(run, 9).empty());
  EXPECT_THAT(html_page({run}, "1"), Not(HasSubstr("Texts written")));
  std::string lines = "{\"step\":1,\"name\":\"a callback's\",\"text\":\"no\"}\n";
  for (int step = 10; step <= 30; step += 10) {
    for (int i = 1; i <= 2; ++i)
      lines += fmt::format("{{\"step\":{},\"name\":\"sample {}\",\"text\":\"<b> {}\"}}\n", step, i, step + i);
  }
  write_file_atomic(folder.path() / "texts.jsonl", lines + "broken");
  const auto written = read_written(run, 2);
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].step, 30);
  EXPECT_THAT(written[0].texts, ElementsAre("<b> 31", "<b> 32"));
  EXPECT_EQ(written[1].step, 20);
  EXPECT_THAT(html_page({run}, "1"), HasSubstr("<td class=\"text\">&lt;b&gt; 31</td>"));
}

}  // namespace
}  // namespace stretto::report
