#include "stretto/trainer/run/micro_batch_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/trainer/records/logged_values.h"
#include "stretto/trainer/run/loop_fixture.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;

TEST(StepTotals, RequestsAndLogsOfAnyRankSurviveTheSum) {
  const StepTotals one = {.loss = 2, .count = 3, .logged = true, .logged_in_epoch = false};
  StepTotals other = {.loss = 5, .count = 4};
  other.requests.stop = other.requests.record = true;
  StepTotals::Packed sums = one.pack();
  const StepTotals::Packed more = other.pack();
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
  const StepTotals totals = StepTotals::unpack(sums);
  EXPECT_EQ(totals.loss, 7);
  EXPECT_EQ(totals.count, 7);
  EXPECT_TRUE(totals.logged);
  EXPECT_FALSE(totals.logged_in_epoch);
  EXPECT_TRUE(totals.requests.stop && totals.requests.record);
  EXPECT_FALSE(totals.requests.save || totals.requests.end || totals.requests.evaluate);
  other.logged_in_epoch = true;
  EXPECT_TRUE(StepTotals::unpack(other.pack()).logged_in_epoch);
}

// Notes the samples of each call, and counts them in a metric object and in a logged value.
struct Recording : Line {
  Recording() : seen(metric(std::make_shared<Seen>())) {}

  struct Seen : Metric {
    Seen() : Metric(Kind::sum, {}) {}
    Metrics compute() const override { return {{"seen", state().item<double>()}}; }
    void update(int64_t samples) { add(at::scalar_tensor(samples, at::kDouble)); }
  };

  Tensor validation_step(const Batch& batch, StepContext& context) override {
    calls.push_back(batch.sample_ids);
    seen->update(batch.count);
    context.log("ones", 1);
    return at::full({batch.count, 1}, static_cast<double>(context.batch_count), at::kDouble);
  }

  std::shared_ptr<Seen> seen;
  std::vector<std::vector<int64_t>> calls;
};

// The samples of each call on a rank that has the second of two micro-batches only, and what the calls count.
struct Result {
  std::vector<std::vector<int64_t>> calls;
  std::vector<std::vector<int64_t>> used;
  double seen = 0, logged = 0;
};
Result evaluate_with_an_empty_micro_batch(bool collective_forward) {
  Result result;
  run_rank_threads(1, [&](Group& group) {
    const at::NoGradGuard no_grad;
    const Points points(9);
    Recording module;
    EvaluatedMetrics objects(module.metric_objects());
    LoggedWindows logged;
    const Mesh mesh(group, {});
    MicroBatchRunner runner(module, points, mesh,
                            {.device = at::kCPU, .collective_forward = collective_forward});
    const data::GlobalBatch batch = {.samples = {4, 5, 6}, .micro_batches = {{}, {6, 5}}};
    runner.evaluate(batch, {}, EvaluationStep::validation, objects, logged,
                    [&](std::span<const int64_t> samples, const Tensor& rows) {
                      result.used.emplace_back(samples.begin(), samples.end());
                      EXPECT_EQ(rows.defined(), !samples.empty());
                    });
    result.calls = module.calls;
    result.seen = module.seen->state().item<double>();
    result.logged = logged.record.to_json().at("ones").at(1);
  });
  return result;
}

TEST(MicroBatchRunner, SkipsAMicroBatchWithoutSamples) {
  const Result result = evaluate_with_an_empty_micro_batch(/*collective_forward=*/false);
  EXPECT_THAT(result.calls, ElementsAre(ElementsAre(6, 5)));
  EXPECT_THAT(result.used, ElementsAre(ElementsAre(), ElementsAre(6, 5)));
  EXPECT_EQ(result.seen, 2);
  EXPECT_EQ(result.logged, 2);
}

TEST(MicroBatchRunner, ASampleStandsInWhereForwardIsCollectiveAndCountsNothing) {
  const Result result = evaluate_with_an_empty_micro_batch(/*collective_forward=*/true);
  EXPECT_THAT(result.calls, ElementsAre(ElementsAre(4), ElementsAre(6, 5)));
  EXPECT_THAT(result.used, ElementsAre(ElementsAre(), ElementsAre(6, 5)));
  EXPECT_EQ(result.seen, 2);
  EXPECT_EQ(result.logged, 2);
}

}  // namespace
}  // namespace stretto
