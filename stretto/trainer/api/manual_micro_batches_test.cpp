#include "stretto/base/message_support.h"
#include "stretto/trainer/api/manual_fixture.h"

// Several micro-batches per step.
namespace stretto::trainer {
namespace {

// Two regressions whose losses also give gradients to the other one's parameters.
struct TwoLines : Module {
  struct Net : torch::nn::Module {
    Net() {
      first = register_module("first", std::make_shared<torch::nn::LinearImpl>(4, 1));
      second = register_module("second", std::make_shared<torch::nn::LinearImpl>(4, 1));
      at::NoGradGuard no_grad;
      for (Tensor& parameter : parameters()) parameter.fill_(0.25);
    }
    std::shared_ptr<torch::nn::LinearImpl> first, second;
  };
  TwoLines() : net(model(std::make_shared<Net>())) {}
  bool automatic_optimization() const override { return false; }
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto loss = [&](torch::nn::LinearImpl& line, torch::nn::LinearImpl& other) {
      const Tensor error = at::mse_loss(line.forward(batch.at("x")), batch.at("y"), at::Reduction::Sum);
      return Loss(error + other.weight.square().sum() * batch.count, batch.count);
    };
    context.manual().backward(loss(*net->first, *net->second));
    context.manual().step("first");
    context.manual().step("second", loss(*net->second, *net->first));
    return {at::ones({}), batch.count};
  }
  Predictions validation_step(const Batch&, StepContext&) override { return {}; }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"first", "first.*", optim::adamw({.lr = 0.02})});
    plan.several.push_back({"second", "second.*", optim::sgd({.lr = 0.01, .momentum = 0.9})});
    return plan;
  }
  std::shared_ptr<Net> net;
  int64_t samples = 0;  // of the fixture
};

// Batches of 8, the last of an epoch with 3 samples.
TEST_F(ManualTest, AccumulationEqualsWholeBatches) {
  recipe_.checkpoint.monitor = std::nullopt;
  recipe_.training.global_batch_size = 8;
  const NamedTensors whole = train<TwoLines>(1, "whole");
  EXPECT_EQ(records().back().at("step"), 8);
  recipe_.training.batch_size = 2;
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    for (const int ranks : {1, 2}) {
      const std::string which = fmt::format("{}-{}-{}", strategy, backend, ranks);
      const NamedTensors parts = train<TwoLines>(ranks, which);
      EXPECT_EQ(records().back().at("step"), 8);
      for (const auto& [name, tensor] : whole)
        EXPECT_TRUE(tensor.allclose(parts.at(name), 1e-9, 1e-12)) << name << " " << which;
    }
  }
}

struct StepsEarlyOnly : TwoLines {
  Loss training_step(const Batch& batch, StepContext& context) override {
    ManualOptimization& manual = context.manual();
    const Tensor sum = net->first->forward(batch.at("x")).sum();
    manual.step(manual.updates() ? "second" : "first", {sum + net->second->weight.sum(), batch.count});
    return {sum.detach(), batch.count};
  }
};

// The second optimizer would get the gradients of the last micro-batch alone.
struct StepsLateOnly : TwoLines {
  Loss training_step(const Batch& batch, StepContext& context) override {
    ManualOptimization& manual = context.manual();
    const Tensor sum = net->first->forward(batch.at("x")).sum();
    manual.step("first", {sum, batch.count});
    if (manual.updates()) manual.step("second", {net->second->weight.sum(), batch.count});
    return {sum.detach(), batch.count};
  }
};

TEST_F(ManualTest, EveryMicroBatchStepsTheSameOptimizers) {
  recipe_.training.batch_size = 2;
  EXPECT_THAT(message_of([&] { fit<StepsEarlyOnly>(); }),
              has_all("first micro-batch", "this call was step(\"first\")"));
  EXPECT_THAT(message_of([&] { fit<StepsLateOnly>(); }),
              has_all("step(\"second\"): ", "first micro-batch", "not made"));
}

// The discriminator is stepped twice, and its second loss depends on the first step.
struct Critic : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    ManualOptimization& manual = context.manual();
    EXPECT_TRUE(manual.updates());
    manual.step("discriminator", discriminated(batch));
    return GanTask::training_step(batch, context);
  }
  Loss discriminated(const Batch& batch) const {
    const Tensor logits = net->discriminator->forward(batch.at("x"));
    return {logits.square().sum(), 0.3 + static_cast<double>(batch.sample_ids.front() % 7)};
  }
};

// 4 micro-batches of 2 samples; the last batch of an epoch has 3 samples, so that one is empty. Any other
// order of sums has other bits.
TEST_F(ManualTest, DeterministicRunsHaveTheSameBitsOnAnyRanksUnderEveryStrategy) {
  recipe_.training.global_batch_size = 8;
  recipe_.training.max_grad_norm = 0.1;
  recipe_.ema.decay = 0.75;
  const NamedTensors whole = train(1, "whole");
  recipe_.training.batch_size = 2;
  recipe_.training.deterministic = true;
  const NamedTensors alone = train(1, "alone"), critic = train<Critic>(1, "critic");
  for (const auto& [name, tensor] : whole)
    EXPECT_TRUE(tensor.allclose(alone.at(name), 1e-9, 1e-12))
        << name << ": each loss follows the step before";
  const auto losses = [&](const char* name) {
    recipe_.output = folder_.path() / name;
    std::vector<double> values;
    for (const auto& record : records())
      if (record.contains("loss")) values.push_back(record.at("loss"));
    return values;
  };
  const auto expected = losses("alone");
  ASSERT_EQ(expected.size(), 8U);
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    for (const int ranks : {2, 3, 4}) {
      const std::string which = fmt::format("{}-{}-{}", strategy, backend, ranks);
      const NamedTensors several = train(ranks, which), twice = train<Critic>(ranks, "critic-" + which);
      for (const auto& [name, tensor] : alone) EXPECT_TRUE(tensor.equal(several.at(name))) << name << which;
      for (const auto& [name, tensor] : critic) EXPECT_TRUE(tensor.equal(twice.at(name))) << name << which;
      EXPECT_EQ(losses(which.c_str()), expected) << which;
    }
  }
}

// Micro-batches that step different optimizers, as the first one does not.
template <int64_t one_more>
struct StepsDiffer : TwoLines {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Loss loss = {net->first->forward(batch.at("x")).sum() + net->second->weight.sum(), batch.count};
    const bool other = (batch_of_step++ > 0) == (one_more > 0);
    context.manual().step("first", loss);
    if (other) context.manual().step("second", {net->second->weight.square().sum(), batch.count});
    return {loss.sum.detach(), loss.count};
  }
  int64_t batch_of_step = 0;
};

TEST_F(ManualTest, EveryMicroBatchOfADeterministicRunMakesTheSameCalls) {
  recipe_.training.batch_size = 2;
  recipe_.training.deterministic = true;
  EXPECT_THAT(message_of([&] { fit<StepsDiffer<0>>(); }), has_all("stepped \"second\"", "first micro-batch"));
  EXPECT_THAT(message_of([&] { fit<StepsDiffer<1>>(); }), has_all("first micro-batch", "not made"));
}

}  // namespace
}  // namespace stretto::trainer
