#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/trainer/run/loop_fixture.h"

namespace stretto::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The loss of each set is logged under its name too, as validation_step sees it.
struct SetLine : Line {
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    Line::validation_step(batch, context);
    context.log("of_" + (context.validation_set.empty() ? "main" : context.validation_set), 1);
    return {};
  }
};

TEST_F(LoopTest, EvaluatesSeveralSets) {
  const Points hard(5), easy(3);
  recipe_.checkpoint.monitor = "hard/loss";
  recipe_.evaluate.max_samples = 4;
  recipe_.evaluate.sanity_steps = 1;
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    const FitResult result = fit<SetLine>(ranks, [&](Trainer& trainer) {
      trainer.add_validation("hard", hard);
      trainer.add_validation("easy", easy);
    });
    EXPECT_THAT(steps_with("eval_hard/loss"), ElementsAre(7, 14, 21));
    EXPECT_THAT(steps_with("eval_loss"), ElementsAre(7, 14, 21));
    EXPECT_EQ(samples_, (1 + 3) * (4 + 4 + 3)) << "each sample once per evaluation, at most 4 per set";
    ASSERT_TRUE(result.best);
    EXPECT_THAT(*result.best, ::testing::IsSupersetOf(std::vector<std::pair<const std::string, double>>{
                                  {"of_main", 1}, {"hard/of_hard", 1}, {"easy/of_easy", 1}}));
    EXPECT_NE(result.best->at("hard/loss"), result.best->at("loss"));
  }
}

TEST_F(LoopTest, AnEarlyEvaluationMayBeRequired) {
  for (const auto& [every, first] : {std::pair("0.5ep", 4), {"2ep", 14}, {"3", 3}, {"500", 21}}) {
    recipe_.output = folder_.path() / every;
    recipe_.evaluate.every = every;
    recipe_.evaluate.first_by = first - 1;
    EXPECT_THAT(
        message_of<ConfigError>([&] { fit(); }),
        HasSubstr(fmt::format("evaluate.first_by: the first evaluation follows step {}, because", first)));
    EXPECT_FALSE(std::filesystem::exists(recipe_.output / "metrics.jsonl"));
    recipe_.evaluate.first_by = first;
    fit();
    EXPECT_EQ(steps_with("eval_loss").front(), first) << every;
  }
}

TEST_F(LoopTest, SetsNeedNamesAndAMainSet) {
  const Points points(5);
  const Line module;
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe_, group);
    Trainer trainer(recipe_, mesh, at::kCPU);
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.add_validation("a/b", points); }),
                HasSubstr("\"a/b\" is not a name of samples"));
    trainer.add_validation("a", points);
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.add_validation("a", points); }),
                HasSubstr("there are samples named \"a\" already"));
    Line line;
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.fit(line, points, nullptr); }),
                HasSubstr("fit() has no validation samples"));
  });
}

// A linear regression has its lowest loss at one point, which is found in a few steps over all samples.
TEST_F(LoopTest, LbfgsEvaluatesABatchSeveralTimes) {
  recipe_.training.global_batch_size = 27;
  recipe_.training.epochs = 6;
  recipe_.optimizer = optim::LbfgsOptions{.history_size = 10, .line_search_fn = "strong_wolfe"};
  EXPECT_THAT(message_of<ConfigError>([&] { fit(); }),
              HasSubstr("training.max_grad_norm: LBFGS compares gradients with changes of the loss"));
  recipe_.training.max_grad_norm = 0;
  std::vector<double> losses;
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    const FitResult result = fit(ranks);
    ASSERT_TRUE(result.best);
    losses.push_back(result.best->at("loss"));
    EXPECT_LT(losses.back(), 1e-10);
    EXPECT_EQ(result.samples, 6 * 27);
  }
  // A run in parts, through checkpoints, equals the uninterrupted one.
  recipe_.output = folder_.path() / "parts";
  recipe_.checkpoint.every = 1;
  recipe_.training.steps_this_run = 2;
  FitResult part;
  do part = fit(2);
  while (part.stopped);
  EXPECT_EQ(part.best->at("loss"), losses.back());
  recipe_.output = folder_.path() / "sharded";
  recipe_.training.strategy = "zero1";
  EXPECT_THAT(message_of<ConfigError>([&] { fit(2); }), HasSubstr("LBFGS needs all of them on each"));
}

TEST_F(LoopTest, AFastDevRunDoesNotChangeTheRun) {
  const FitResult whole = fit();
  const std::string metrics = read_file(recipe_.output / "metrics.jsonl");
  const auto run = recipe_.output;
  recipe_.training.fast_dev_run = 2;
  recipe_.track.trackers = {"jsonl"};
  recipe_.checkpoint.every = 1;
  resolve(recipe_);
  resolve(recipe_);
  EXPECT_EQ(recipe_.output, run / "fast_dev_run");
  samples_ = 0;
  const FitResult result = fit();
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(result.resumed_after, 0);
  EXPECT_EQ(read_file(run / "metrics.jsonl"), metrics);
  EXPECT_TRUE(std::filesystem::exists(run / "fast_dev_run/model"));
  EXPECT_FALSE(std::filesystem::exists(run / "fast_dev_run/metrics.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(run / "fast_dev_run/checkpoints"));
  fit();
  EXPECT_FALSE(std::filesystem::exists(run / "fast_dev_run/previous-1")) << "there is nothing to keep";
}

TEST_F(LoopTest, RecordsTheTimeSpentOnData) {
  recipe_.track.log_every = 7;
  fit(2);
  for (const auto& record : records()) {
    if (!record.contains("lr")) continue;
    EXPECT_GT(record.at("data_wait"), 0);
    EXPECT_LT(record.at("data_wait"), 1);
  }
  EXPECT_EQ(steps_with("data_wait").size(), 3u);
}

// Stores the gradients of step 3.
struct KeepsGradients : Callback {
  explicit KeepsGradients(NamedTensors& kept) : kept(kept) {}
  std::string name() const override { return "keeps_gradients"; }
  bool reads_gradients() const override { return true; }
  void gradients_ready(FitContext& fit, const StepReport& coming) override {
    if (coming.step != 3) return;
    epochs = coming.epochs;
    const NamedTensors gradients = fit.gradients();
    if (fit.mesh.world().rank() == 0) kept = gradients;
  }
  void step_end(FitContext&, const StepReport& report) override {
    if (report.step == 3) {
      EXPECT_DOUBLE_EQ(report.epochs, epochs);
    }
  }
  NamedTensors& kept;
  double epochs = 0;
};

TEST_F(LoopTest, CallbacksReadTheGradientsOfTheGlobalBatch) {
  recipe_.training.max_steps = 4;
  recipe_.training.max_grad_norm = 0.01;  // the gradients are those before clipping
  const auto of = [&](int ranks, const std::string& strategy) {
    recipe_.training.strategy = strategy;
    if (strategy == "hsdp") recipe_.training.dp_shard = 2;
    recipe_.output = folder_.path() / (strategy + std::to_string(ranks));
    NamedTensors kept;
    fit(ranks, [&](Trainer& trainer) { trainer.add(std::make_shared<KeepsGradients>(kept)); });
    return kept;
  };
  const NamedTensors alone = of(1, "ddp");
  ASSERT_EQ(alone.size(), 2U);
  EXPECT_GT(alone.at("weight").norm().item<double>(), 0.01);
  for (const auto& [ranks, strategy] : {std::pair(2, "ddp"), std::pair(3, "ddp"), std::pair(2, "zero1"),
                                        std::pair(2, "zero2"), std::pair(3, "fsdp"), std::pair(4, "hsdp")}) {
    const NamedTensors several = of(ranks, strategy);
    ASSERT_EQ(several.size(), 2U) << strategy;
    for (const auto& [name, gradient] : alone)
      EXPECT_TRUE(gradient.allclose(several.at(name), 1e-9, 1e-12)) << name << ranks << strategy;
  }
}

}  // namespace
}  // namespace stretto::trainer
