#include <cmath>

#include "stretto/base/message_support.h"
#include "stretto/trainer/api/manual_fixture.h"

// What the ranks of a step of manual optimization compare, and how they are named.
namespace stretto::trainer {
namespace {

// Rank 1 calls backward once more.
struct CallsBackwardAgain : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto loss = [&] { return Loss(net->generator->weight.square().sum(), 0); };
    context.manual().backward(loss());
    if (context.data_parallel().rank() == 1) context.manual().backward(loss());
    context.manual().step("generator", {loss().sum, batch.count});
    return {at::zeros({}), batch.count};
  }
};

TEST_F(ManualTest, RanksThatCallBackwardUnequallyOftenAreNamed) {
  for (const char* strategy : {"ddp", "zero1"}) {
    recipe_.training.strategy = strategy;
    EXPECT_THAT(message_of<ConfigError>([&] { fit<CallsBackwardAgain>(3); }),
                has_all("step 1: step(\"generator\"): backward ", "2 times on ranks 0, 2",
                        "3 times on rank 1", "equally often"))
        << strategy;
  }
  recipe_.training.strategy = "ddp";
  recipe_.training.grad_accumulation_steps = 2;
  const auto refuses = [&] {
    EXPECT_THAT(message_of<ConfigError>([&] { fit<CallsBackwardAgain>(2); }),
                has_all("4 times on rank 0", "6 times on rank 1"));
  };
  refuses();
  recipe_.training.batch_size = 1;
  recipe_.training.deterministic = true;
  refuses();
}

// On rank 1 the gradient of the generator's weight is not finite in the generator's step. On rank 0 only
// gradients that steps do not use are not: those of the other optimizer's parameters. The losses are finite.
struct GradientDivergesOnOneRank : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto nan_gradient = [](const Tensor& weight) {
      return (weight - weight.detach()).abs().sqrt().sum();
    };
    const Tensor &weight = net->generator->weight, &other = net->discriminator->weight;
    const int rank = context.data_parallel().rank();
    Tensor sum = other.square().sum();
    if (rank == 0) sum = sum + nan_gradient(weight);
    context.manual().step("discriminator", {sum, batch.count});
    sum = weight.square().sum();
    if (rank == 0) sum = sum + nan_gradient(other);
    if (rank == 1) sum = sum + nan_gradient(weight);
    context.manual().backward({weight.square().sum(), 0});
    context.manual().step("generator", {sum, batch.count});
    return {at::zeros({}), batch.count};
  }
};

TEST_F(ManualTest, TheRanksWhoseGradientIsNotFiniteAreNamed) {
  const auto refuses = [&](const std::string& which) {
    EXPECT_THAT(message_of([&] { fit<GradientDivergesOnOneRank>(2); }),
                has_all("step 1: step(\"generator\"): the gradient is not finite", "on rank 1, first",
                        "of generator.weight"))
        << which;
  };
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    refuses(fmt::format("{} {}", strategy, backend));
  }
  recipe_.training.strategy = "ddp";
  recipe_.training.grad_accumulation_steps = 2;
  refuses("accumulated");
  recipe_.training.batch_size = 1;
  recipe_.training.deterministic = true;
  refuses("deterministic");
}

// Each rank's gradient is finite, but not their sum.
struct SumOverflows : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor& weight = net->generator->weight;
    context.manual().step("generator", {(weight - weight.detach()).sum() * 1.5e308, batch.count});
    return {at::zeros({}), batch.count};
  }
};

TEST_F(ManualTest, AGradientThatOverflowsInTheSumIsNotThatOfARank) {
  EXPECT_THAT(message_of([&] { fit<SumOverflows>(2); }),
              has_all("gradient is not finite", "in the sum over all ranks only, first"));
}

}  // namespace
}  // namespace stretto::trainer
