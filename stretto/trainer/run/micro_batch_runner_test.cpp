#include "stretto/trainer/run/micro_batch_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/records/logged_values.h"
#include "stretto/trainer/run/loop_fixture.h"
#include "stretto/trainer/run/optimizer_set.h"

namespace stretto::trainer {
namespace {

using ::testing::ElementsAre;

TEST(StepTotals, RequestsAndLogsOfAnyRankSurviveTheSum) {
  const StepTotals one = {.loss = 2, .count = 3, .logged = true, .logged_in_epoch = false};
  StepTotals other = {.loss = 5, .count = 6};
  other.requests.stop = other.requests.record = true;
  StepTotals::Packed sums = one.pack();
  const StepTotals::Packed more = other.pack();
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
  const StepTotals totals = StepTotals::unpack(sums);
  EXPECT_EQ(totals.loss, 7);
  EXPECT_EQ(totals.count, 9);
  EXPECT_TRUE(totals.logged);
  EXPECT_FALSE(totals.logged_in_epoch);
  EXPECT_TRUE(totals.requests.stop && totals.requests.record);
  EXPECT_FALSE(totals.requests.save || totals.requests.end || totals.requests.evaluate);
  other.logged_in_epoch = true;
  EXPECT_TRUE(StepTotals::unpack(other.pack()).logged_in_epoch);
}

// Records the samples of each call, and counts them in a metric object and in a logged value.
struct Recording : Line {
  Recording() : seen(metric(std::make_shared<Seen>())) {}

  struct Seen : Metric {
    Seen() : Metric(Kind::sum, {}) {}
    Metrics compute() const override { return {{"seen", state().item<double>()}}; }
    void update(int64_t samples) { add(at::scalar_tensor(samples, at::kDouble)); }
  };

  Predictions validation_step(const Batch& batch, StepContext& context) override {
    calls.push_back(batch.sample_ids);
    seen->update(batch.count);
    context.log("ones", 1);
    return at::full({batch.count, 1}, static_cast<double>(context.batch_count), at::kDouble);
  }

  std::shared_ptr<Seen> seen;
  std::vector<std::vector<int64_t>> calls;
};

// The samples of each call on a rank that has only the second of two micro-batches, and the counted samples.
struct Result {
  std::vector<std::vector<int64_t>> calls;
  std::vector<std::vector<int64_t>> used;
  double seen = 0, logged = 0;
};
Result evaluate_with_an_empty_micro_batch(bool collective_forward) {
  Result result;
  comm::run_rank_threads(1, [&](Group& group) {
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
                    [&](std::span<const int64_t> samples, const Predictions& predictions) {
                      result.used.emplace_back(samples.begin(), samples.end());
                      EXPECT_EQ(predictions.rows.defined(), !samples.empty());
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

TEST(MicroBatchRunner, ASubstituteRunsIfForwardIsCollectiveAndDoesNotCount) {
  const Result result = evaluate_with_an_empty_micro_batch(/*collective_forward=*/true);
  EXPECT_THAT(result.calls, ElementsAre(ElementsAre(4), ElementsAre(6, 5)));
  EXPECT_THAT(result.used, ElementsAre(ElementsAre(), ElementsAre(6, 5)));
  EXPECT_EQ(result.seen, 2);
  EXPECT_EQ(result.logged, 2);
}

// Records the samples of each call, and logs a value with it.
struct Noting : Line {
  Noting() { root().to(at::kDouble); }
  Loss training_step(const Batch& batch, StepContext& context) override {
    calls.push_back(batch.sample_ids);
    EXPECT_EQ(context.step, 7);
    EXPECT_EQ(context.epoch, 2);
    context.log("ones", 1);
    return Line::training_step(batch, context);
  }
  std::vector<std::vector<int64_t>> calls;
};
const PassInfo seventh = {.step = 7, .epoch = 2};

// The sum of the squared errors of samples by a new Line, and its gradient.
struct Expected {
  explicit Expected(std::vector<int64_t> samples) {
    Noting line;
    const Batch batch = make_batch(line, Points(9), samples);
    const Tensor sum = (line.layer->forward(batch.at("x")) - batch.at("y")).square().sum();
    sum.backward();
    loss = sum.item<double>();
    weight = line.layer->weight.grad();
  }
  double loss = 0;
  Tensor weight;  // its gradient
};

TEST(MicroBatchRunner, TrainingSumsLossesAndGradientsOfTheSamples) {
  for (const bool collective_forward : {false, true}) {
    comm::run_rank_threads(1, [&](Group& group) {
      const Points points(9);
      Noting module;
      const Mesh mesh(group, {});
      parallel::Engine engine(module.root(), mesh, {.precision = Precision::fp64}, optim::sgd({.lr = 0.1}));
      MicroBatchRunner runner(module, points, mesh,
                              {.device = at::kCPU, .collective_forward = collective_forward});
      LoggedWindows logged;
      const data::GlobalBatch batch = {.samples = {4, 5, 6}, .micro_batches = {{5}, {}, {6, 4}}};
      const StepTotals totals = runner.train(batch, seventh, engine, logged);
      engine.finish();
      const Expected expected({4, 5, 6});
      EXPECT_NEAR(totals.loss, expected.loss, 1e-12);
      EXPECT_EQ(totals.count, 3);
      EXPECT_TRUE(totals.logged && !totals.logged_in_epoch);
      EXPECT_EQ(logged.record.to_json().at("ones").at(1), 3) << "samples that it replaces";
      const NamedTensors gradients = engine.gradients().by_name(1);
      EXPECT_TRUE(at::allclose(gradients.at("weight"), expected.weight, 0, 1e-12));
      // A sample of another rank replaces those that this rank does not have.
      const std::vector<std::vector<int64_t>> own = {{5}, {6, 4}}, with_idle = {{5}, {4}, {6, 4}};
      EXPECT_EQ(module.calls, collective_forward ? with_idle : own);
    });
  }
}

struct StepsItself : Noting {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Loss loss = Noting::training_step(batch, context);
    context.manual().backward(loss);
    context.manual().step("all");
    return loss;
  }
};

// Two ranks, of which the second has no sample of the batch.
TEST(MicroBatchRunner, AModuleThatStepsItselfRunsOnEveryRankAndCountsItsSamples) {
  comm::run_rank_threads(2, [](Group& group) {
    const Points points(9);
    const bool idle = group.rank() == 1;
    StepsItself module;
    const Mesh mesh(group, {.dp_replicate = 2});
    std::vector<NamedOptimizer> optimizers;
    optimizers.push_back({"all", "*", optim::sgd({.lr = 0.1})});
    auto set = std::make_unique<OptimizerSet>(std::move(optimizers));
    OptimizerSet& all = *set;
    parallel::Engine engine(module.root(), mesh, {.precision = Precision::fp64}, std::move(set));
    Recipe recipe;
    recipe.training.max_grad_norm = 0;
    ManualOptimization manual(recipe, engine, all, /*total_steps=*/10, group);
    MicroBatchRunner runner(module, points, mesh, {.device = at::kCPU});
    LoggedWindows logged;
    data::GlobalBatch batch = {.samples = {4, 5, 6}, .micro_batches = {{6, 4, 5}}};
    if (idle) batch.micro_batches = {{}};
    const StepTotals totals = runner.by_hand(batch, seventh, manual, logged);
    const Expected expected({4, 5, 6});
    EXPECT_NEAR(totals.loss, idle ? 0 : expected.loss, 1e-12);
    EXPECT_EQ(totals.count, idle ? 0 : 3);
    EXPECT_EQ(totals.logged, !idle);
    EXPECT_THAT(module.calls, ElementsAre(idle ? std::vector<int64_t>{4} : std::vector<int64_t>{6, 4, 5}));
    EXPECT_TRUE(at::allclose(module.layer->weight, 0.25 - 0.1 * expected.weight / 3, 0, 1e-12))
        << "the mean over the samples of both ranks";
  });
}

}  // namespace
}  // namespace stretto::trainer
