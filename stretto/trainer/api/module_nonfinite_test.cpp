#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/module_fixture.h"

// Losses, gradients and weights that are not finite.
namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

struct SinglePrecision : Regression {
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor x = batch.at("x").to(at::kFloat), y = batch.at("y").to(at::kFloat);
    return loss_of_mean(at::mse_loss(net->forward(x), y), batch.count);
  }
};

// The loss is finite, but its gradient on rank 1 is not: 0 times the infinite derivative of the square root
// at 0.
struct NanGradientOnRank1 : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    Loss loss = Regression::training_step(batch, context);
    const Tensor zero = net->parameters().front() * 0;
    if (context.data_parallel().rank() == 1 && context.step == 2)
      loss.sum = loss.sum + zero.abs().sqrt().sum();
    return loss;
  }
};

TEST_F(ModuleTest, AGradientThatIsNotFiniteIsNamedByRankAndParameter) {
  EXPECT_THAT(message_of([&] { fit<NanGradientOnRank1>(3); }),
              has_all("step 3: a gradient is not finite", "first on rank 1", "gradient of first.weight"));
  recipe_.training.on_nonfinite = "skip";
  testing::internal::CaptureStderr();
  EXPECT_EQ(fit<NanGradientOnRank1>(3).steps, 12);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), has_all("a gradient is not finite", "first on rank 1",
                                                              "gradient of first.weight", "skipping step 3"));
}

struct HugeGradient : Regression {
  Loss training_step(const Batch& batch, StepContext&) override {
    return {net->parameters().front().sum() * 3e38, static_cast<double>(batch.count)};
  }
};

TEST_F(ModuleTest, NoRankIsBlamedForAGradientThatOverflowsInTheSum) {
  recipe_.training.precision = "fp32";
  EXPECT_THAT(message_of([&] { fit<HugeGradient>(2); }),
              has_all("is not finite", "gradient of first.weight", "only in the sum over all ranks"));
}

// Draws torch's random numbers and counts its steps in a buffer.
struct WithState : torch::nn::Module {
  WithState() : layer(register_module("layer", std::make_shared<nn::Linear>(2, 1))) {
    steps = register_buffer("steps", at::zeros({}, at::kDouble));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.25);
  }
  std::shared_ptr<nn::Linear> layer;
  Tensor steps;
};

// In step 3 the loss is not finite, or only its gradient.
template <bool loss_too>
struct SkippedStep : Module {
  SkippedStep() : net(model(std::make_shared<WithState>())) {}
  Loss training_step(const Batch& batch, StepContext& context) override {
    net->steps.add_(1);
    const Tensor x = at::dropout(batch.at("x"), 0.5, /*train=*/true);
    Tensor loss = at::mse_loss(net->layer->forward(x).squeeze(1), batch.at("y"));
    const Tensor zero = (net->layer->weight * 0).sum();
    if (context.step == 2) loss = loss + (loss_too ? zero / 0 : zero.abs().sqrt());
    return loss_of_mean(loss, batch.count);
  }
  std::shared_ptr<WithState> net;
};

// To name the rank, the gradient of the skipped step is computed a second time.
TEST_F(ModuleTest, ASkippedStepDoesNotChangeRandomNumbersAndBuffers) {
  recipe_.training.on_nonfinite = "skip";
  const auto weights_of = [&](auto module, const char* run) {
    recipe_.output = folder_.path() / run;
    EXPECT_EQ(fit<decltype(module)>(1).steps, 12);
    return SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  };
  const NamedTensors by_loss = weights_of(SkippedStep<true>(), "loss"),
                     by_gradient = weights_of(SkippedStep<false>(), "gradient");
  ASSERT_EQ(by_loss.size(), 3u);
  for (const auto& [name, tensor] : by_loss) EXPECT_TRUE(tensor.equal(by_gradient.at(name))) << name;
  EXPECT_EQ(by_gradient.at("steps").item<double>(), 12);
}

// Finite losses, and a last step that makes the weights infinite.
TEST_F(ModuleTest, WeightsThatOverflowAreNotSavedUnlessAllowed) {
  recipe_.training.precision = "fp32";
  recipe_.training.max_steps = 1;
  recipe_.optimizer.as<optim::AdamwOptions>().lr = 1e300;
  recipe_.checkpoint.every = "1";
  recipe_.checkpoint.async = false;
  EXPECT_THAT(message_of([&] { fit<SinglePrecision>(2); }),
              ::testing::AllOf(HasSubstr("step 1: the weights overflowed: first.bias holds NaN or infinity"),
                               HasSubstr("checkpoint.allow_nonfinite: true")));
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "model"));
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "checkpoints/step-00000001"));
  recipe_.checkpoint.allow_nonfinite = true;
  fit<SinglePrecision>(2);
  EXPECT_TRUE(std::filesystem::exists(recipe_.output / "model/model.safetensors"));
}

}  // namespace
}  // namespace stretto::trainer
