#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/config/recipe.h"
#include "stretto/data/samples.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/records/records_fixture.h"

// The exponential moving average of the weights: section ema of the recipe.
namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

class Grid : public data::SampleDataset {
 public:
  explicit Grid(int64_t count) : SampleDataset(count) {}
  data::Sample sample(int64_t index) const override {
    const Tensor x = at::cos(at::arange(1, 6, at::kFloat) * static_cast<double>(index + 1));
    return {{"x", x}, {"y", x.sum().unsqueeze(0)}};
  }
};

struct TwoBlocks : torch::nn::Module {
  TwoBlocks() {
    first = register_module("first", nn::sharded(std::make_shared<nn::Linear>(5, 5)));
    second = register_module("second", nn::sharded(std::make_shared<nn::Linear>(5, 1)));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters())
      parameter.copy_(at::linspace(-0.4, 0.5, parameter.numel()).view_as(parameter));
  }
  Tensor forward(const Tensor& x) { return second->forward(at::tanh(first->forward(x))); }
  std::shared_ptr<nn::Sharded<nn::Linear>> first, second;
};

struct BlockTask : Module {
  BlockTask() : net(model(std::make_shared<TwoBlocks>())) {}
  Loss training_step(const Batch& batch, StepContext&) override {
    const auto type = net->parameters().front().scalar_type();
    const Tensor y = net->forward(batch.at("x").to(type));
    return loss_of_mean(at::mse_loss(y.to(at::kDouble), batch.at("y").to(at::kDouble)), batch.count);
  }
  std::shared_ptr<TwoBlocks> net;
};

// The average of the weights, computed in the test from the weights after each step.
class AverageByHand : public Callback {
 public:
  AverageByHand(double decay, bool warmup) : decay_(decay), warmup_(warmup) {}
  std::string name() const override { return "average"; }
  void fit_start(FitContext& fit) override {
    for (const auto& item : fit.module.root().named_parameters())
      average[item.key()] = item.value().detach().clone();
  }
  void step_end(FitContext& fit, const StepReport& report) override {
    const auto n = static_cast<double>(report.step);
    const double decay = warmup_ ? std::min(decay_, (1 + n) / (10 + n)) : decay_;
    for (const auto& item : fit.module.root().named_parameters())
      average[item.key()] = decay * average[item.key()] + (1 - decay) * item.value().detach();
  }
  NamedTensors average;

 private:
  double decay_;
  bool warmup_;
};

class AverageTest : public ::testing::Test {
 protected:
  AverageTest() {
    recipe_.training.epochs = 2;
    recipe_.training.global_batch_size = 4;
    recipe_.training.precision = "fp64";
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.05;
    recipe_.checkpoint.monitor = "loss";
    recipe_.evaluate.every = 2;
    recipe_.track.progress = "off";
    recipe_.track.log_every = 1;
    recipe_.ema.decay = 0.8;
    recipe_.output = folder_.path() / "run";
  }
  FitResult train(int ranks = 1, const std::shared_ptr<Callback>& callback = nullptr) {
    const Grid samples(23), validation(9);
    FitResult result;
    comm::run_rank_threads(ranks, [&](Group& group) {
      BlockTask task;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer trainer(recipe_, mesh, at::kCPU);
      if (callback != nullptr) trainer.add(callback);
      const FitResult rank_result = trainer.fit(task, samples, &validation);
      if (group.rank() == 0) result = rank_result;
    });
    return result;
  }
  NamedTensors saved() const {
    NamedTensors weights;
    const SafetensorsFile file(recipe_.output / "model/model.safetensors");
    BlockTask task;
    for (const auto& item : task.root().named_parameters()) weights[item.key()] = file.load(item.key());
    return weights;
  }
  std::vector<nlohmann::json> logged(const char* name) const {
    std::vector<nlohmann::json> values;
    for (const auto& record : records_of(recipe_.output)) {
      if (record.contains(name)) values.push_back(record.at(name));
    }
    return values;
  }

  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(AverageTest, AveragesTheWeightsAfterEachStep) {
  recipe_.evaluate.every = "never";  // the model is that of the end
  for (const bool warmup : {false, true}) {
    recipe_.ema.warmup = warmup;
    recipe_.output = folder_.path() / (warmup ? "warmup" : "plain");
    const auto by_hand = std::make_shared<AverageByHand>(0.8, warmup);
    train(1, by_hand);
    for (const auto& [name, tensor] : saved())
      EXPECT_TRUE(tensor.allclose(by_hand->average.at(name), 1e-12, 1e-14)) << name;
  }
}

// Evaluations use the average and do not change the training in any bit, also with a bf16 copy of the
// weights.
TEST_F(AverageTest, DoesNotChangeTheTraining) {
  for (const char* precision : {"fp64", "bf16"}) {
    recipe_.training.precision = precision;
    recipe_.ema.decay = 0.8;
    recipe_.output = folder_.path() / precision / "average";
    train(2);
    const auto losses = logged("loss"), evaluations = logged("eval_loss");
    recipe_.ema.decay = std::nullopt;
    recipe_.output = folder_.path() / precision / "plain";
    train(2);
    EXPECT_EQ(logged("loss"), losses) << precision;
    EXPECT_NE(logged("eval_loss"), evaluations) << precision;
    recipe_.ema.decay = 0.8;
    recipe_.ema.evaluate = false;
    recipe_.output = folder_.path() / precision / "unused";
    train(2);
    recipe_.ema.evaluate = true;
  }
}

class AverageUnderStrategies : public AverageTest,
                               public ::testing::WithParamInterface<std::tuple<std::string, int, bool>> {};

// Every strategy has the same average, and a run in parts has that of the whole run, bit for bit.
TEST_P(AverageUnderStrategies, IsEqual) {
  train();
  const NamedTensors expected = saved();
  const auto& [strategy, ranks, shared] = GetParam();
  recipe_.training.strategy = strategy;
  if (!shared) recipe_.training.shared_parameters = "off";
  recipe_.output = folder_.path() / "whole";
  const FitResult whole = train(ranks);
  const NamedTensors of_whole = saved();
  for (const auto& [name, tensor] : of_whole)
    EXPECT_TRUE(tensor.allclose(expected.at(name), 1e-9, 1e-12)) << name;
  recipe_.checkpoint.every = "3";
  recipe_.training.steps_this_run = 5;
  recipe_.output = folder_.path() / "parts";
  FitResult part;
  do part = train(ranks);
  while (part.stopped);
  EXPECT_EQ(part.steps, whole.steps);
  EXPECT_EQ(part.best, whole.best);
  for (const auto& [name, tensor] : saved()) EXPECT_TRUE(tensor.equal(of_whole.at(name))) << name;
}

INSTANTIATE_TEST_SUITE_P(Strategies, AverageUnderStrategies,
                         ::testing::Combine(::testing::Values("ddp", "zero1", "zero2", "fsdp", "hsdp"),
                                            ::testing::Values(1, 2), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "On" + std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "Shared" : "Apart");
                         });

TEST(Average, SettingsWithoutEffectAreRefused) {
  for (const char* setting : {"warmup: true", "evaluate: false"}) {
    const Recipe recipe =
        parse_recipe(fmt::format("ema: {{{}}}\nevaluate: {{every: never}}", setting), "r.yaml");
    EXPECT_THAT(message_of<ConfigError>([&] { check_recipe(recipe, Verb::fit); }),
                HasSubstr("it has no effect without ema.decay"));
  }
}

}  // namespace
}  // namespace stretto::trainer
