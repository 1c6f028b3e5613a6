// Tests modules of torch's layers under the Trainer: bf16 by autocast, and buffers that each rank's forward
// writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

constexpr int64_t features = 4;

class Waves : public data::SampleDataset {
 public:
  using SampleDataset::SampleDataset;
  data::Sample sample(int64_t index) const override {
    const Tensor x = at::sin(at::arange(features, at::kFloat) * static_cast<double>(index + 1));
    return {{"x", x}, {"y", x.sum()}};
  }
};

struct Normed : torch::nn::Module {
  Normed() {
    register_module("norm", norm);
    register_module("head", head);
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.25);
  }
  torch::nn::BatchNorm1d norm{features};
  torch::nn::Linear head{features, 1};
};

struct NormedRegression : Module {
  NormedRegression() : net(model(std::make_shared<Normed>())) {}
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor x = batch.at("x");
    const Tensor y = net->head->forward(net->norm->forward(x)).squeeze(1);
    predicted = y.scalar_type();
    if (context.forward.training) running_mean = 0.9 * running_mean + 0.1 * x.mean(0);
    return loss_of_mean(at::mse_loss(y.to(at::kFloat), batch.at("y")), batch.count);
  }
  std::shared_ptr<Normed> net;
  at::ScalarType predicted = at::kFloat;
  Tensor running_mean = at::zeros({features});  // of this rank's batches
};

struct DroppingRegression : NormedRegression {
  DroppingRegression() { net->register_module("dropout", torch::nn::Dropout()); }
};

// A layer of stretto::nn before a layer of torch.
struct Mixed : torch::nn::Module {
  Mixed() {
    register_module("own", own);
    register_module("head", head);
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.25);
  }
  std::shared_ptr<nn::Linear> own = std::make_shared<nn::Linear>(features, features);
  torch::nn::Linear head{features, 1};
};

struct MixedRegression : Module {
  MixedRegression() : net(model(std::make_shared<Mixed>())) {}
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor hidden = net->own->forward(batch.at("x").to(net->own->weight.scalar_type()));
    hidden_dtype = hidden.scalar_type();
    const Tensor y = net->head->forward(hidden.to(at::kFloat)).squeeze(1);
    predicted = y.scalar_type();
    return loss_of_mean(at::mse_loss(y.to(at::kFloat), batch.at("y")), batch.count);
  }
  std::shared_ptr<Mixed> net;
  at::ScalarType hidden_dtype = at::kFloat, predicted = at::kFloat;
};

class TorchLayersTest : public ::testing::Test {
 protected:
  TorchLayersTest() {
    recipe_.training.max_steps = 12;
    recipe_.training.global_batch_size = 10;
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.05;
    recipe_.track.progress = "off";
    recipe_.evaluate.every = "never";
    recipe_.output = folder_.path() / "run";
  }
  template <class M>
  FitResult fit(int ranks, const std::function<void(Group&, M&)>& look, const Waves* validation = nullptr) {
    const Waves train(40);
    FitResult result;
    comm::run_rank_threads(ranks, [&](Group& group) {
      M module;
      const Mesh mesh = make_mesh(recipe_, group);
      const FitResult rank_result = Trainer(recipe_, mesh, at::kCPU).fit(module, train, validation);
      look(group, module);
      if (group.rank() == 0) result = rank_result;
    });
    return result;
  }
  NamedTensors saved() const {
    return SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  }

  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(TorchLayersTest, Bf16IsAutocastInTrainingAndEvaluation) {
  recipe_.training.precision = "bf16";
  recipe_.evaluate.every = "epoch";
  const Waves validation(7);
  fit<NormedRegression>(
      2,
      [](Group&, NormedRegression& module) {
        EXPECT_EQ(module.predicted, at::kBFloat16) << "the last step was one of evaluation";
        for (const Tensor& parameter : module.root().parameters())
          EXPECT_EQ(parameter.scalar_type(), at::kFloat);
        EXPECT_EQ(module.net->norm->running_mean.scalar_type(), at::kFloat);
      },
      &validation);
  const NamedTensors in_bf16 = saved();
  recipe_.output = folder_.path() / "fp32";
  recipe_.training.precision = "fp32";
  fit<NormedRegression>(2, [](Group&, NormedRegression& module) { EXPECT_EQ(module.predicted, at::kFloat); });
  for (const auto& [name, tensor] : saved())
    EXPECT_TRUE(at::allclose(tensor.to(at::kFloat), in_bf16.at(name).to(at::kFloat), 0.05, 0.05)) << name;
}

TEST_F(TorchLayersTest, MixedModulesHaveABf16CopyAndAutocast) {
  recipe_.training.precision = "bf16";
  fit<MixedRegression>(1, [](Group&, MixedRegression& module) {
    EXPECT_EQ(module.hidden_dtype, at::kBFloat16);
    EXPECT_EQ(module.predicted, at::kBFloat16);
  });
  EXPECT_EQ(saved().at("head.weight").scalar_type(), at::kFloat) << "master weights";
}

TEST_F(TorchLayersTest, RunningStatisticsOfBatchNormAreThoseOfRank0) {
  recipe_.checkpoint.every = "5";
  recipe_.checkpoint.keep_last = 0;
  Tensor of_rank_0;
  std::atomic<int> differing = 0;
  const auto look = [&](Group& group, NormedRegression& module) {
    if (group.rank() == 0) of_rank_0 = module.running_mean;
    group.barrier();
    if (group.rank() != 0 && !at::allclose(module.running_mean, of_rank_0)) ++differing;
    EXPECT_TRUE(at::allclose(module.net->norm->running_mean, of_rank_0, 1e-5, 1e-6))
        << "rank " << group.rank() << " " << module.net->norm->running_mean << of_rank_0;
  };
  fit<NormedRegression>(2, look);
  EXPECT_EQ(differing, 1) << "the ranks saw the same batches: nothing was tested";
  EXPECT_TRUE(at::allclose(saved().at("norm.running_mean"), of_rank_0, 1e-5, 1e-6));
  EXPECT_EQ(saved().at("norm.num_batches_tracked").item<int64_t>(), 12);
}

TEST_F(TorchLayersTest, DeterministicRunsRefuseDependenceOnTheNumberOfRanks) {
  recipe_.training.deterministic = true;
  recipe_.training.global_batch_size = 8;
  recipe_.training.batch_size = 2;
  EXPECT_THAT(message_of<ConfigError>([&] { fit<NormedRegression>(1, [](Group&, NormedRegression&) {}); }),
              HasSubstr("buffers of the model change in training"));
  EXPECT_THAT(
      message_of<ConfigError>([&] { fit<DroppingRegression>(1, [](Group&, DroppingRegression&) {}); }),
      HasSubstr("torch::nn::Dropout draws from a generator per rank"));
}

TEST_F(TorchLayersTest, RunningStatisticsSurviveAResume) {
  recipe_.checkpoint.every = "5";
  recipe_.checkpoint.keep_last = 0;
  const auto nothing = [](Group&, NormedRegression&) {};
  fit<NormedRegression>(2, nothing);
  const NamedTensors whole = saved();
  recipe_.resume = recipe_.output / "checkpoints/step-00000005";
  recipe_.output = folder_.path() / "resumed";
  EXPECT_EQ(fit<NormedRegression>(2, nothing).resumed_after, 5);
  for (const auto& [name, tensor] : saved()) EXPECT_TRUE(tensor.equal(whole.at(name))) << name;
}

}  // namespace
}  // namespace stretto
