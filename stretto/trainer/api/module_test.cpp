#include "stretto/trainer/api/module.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/module_fixture.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

TEST_F(ModuleTest, ATrainingStepIsEnough) {
  recipe_.evaluate.every = "epoch";
  const Plane validation(7);
  const FitResult result = fit<Regression>(2, 40, &validation);
  ASSERT_TRUE(result.best.has_value());
  const NamedTensors weights = SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  Net net;
  net.to(at::kDouble);
  at::NoGradGuard no_grad;
  for (auto& item : net.named_parameters()) item.value().copy_(weights.at(item.key()));
  double loss = 0;
  for (int64_t i = 0; i < validation.size(); ++i) {
    const data::Sample sample = validation.sample(i);
    loss +=
        at::mse_loss(net.forward(sample.at("x").unsqueeze(0)), sample.at("y").unsqueeze(0)).item<double>() /
        7;
  }
  EXPECT_NEAR(result.best->at("loss"), loss, 1e-12) << "the mean over the samples, not over the batches";
}

struct Collating : Regression {
  Batch collate(std::span<const data::Sample> samples) const override {
    Batch batch = Module::collate(samples);
    batch.tensors["y"] = batch.at("y") * 0;
    return batch;
  }
  Loss training_step(const Batch& batch, StepContext& context) override {
    EXPECT_EQ(batch.at("y").abs().max().item<double>(), 0);
    EXPECT_EQ(std::ssize(batch.sample_ids), batch.count);
    return Regression::training_step(batch, context);
  }
};

TEST_F(ModuleTest, TheModuleMakesTheBatches) { EXPECT_EQ(fit<Collating>(2).steps, 12); }

struct Collective : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const double samples =
        context.data_parallel().all_reduce(at::tensor({static_cast<double>(batch.count)})).item<double>();
    EXPECT_EQ(samples, context.data_parallel().size() == 1 ? batch.count : 10);
    return Regression::training_step(batch, context);
  }
};

TEST_F(ModuleTest, AStepMayReduceOverTheRanks) {
  EXPECT_EQ(fit<Collective>(1).steps, 12);
  EXPECT_EQ(fit<Collective>(2).steps, 12);
}

TEST_F(ModuleTest, ACollectiveThatWouldNeverReturnIsRefused) {
  const auto fitting = [&] { fit<Collective>(2, 41); };  // a last batch of one sample
  EXPECT_THAT(message_of<ConfigError>(fitting), HasSubstr("too few samples for 2 ranks"));
}

// Records which data-parallel rank each step ran on; requests the end on the last rank of the job only.
struct Placed : Regression {
  explicit Placed(const Mesh& mesh) : mesh(mesh) {}
  Loss training_step(const Batch& batch, StepContext& context) override {
    EXPECT_EQ(context.data_parallel().rank(), mesh.position(Axes::data));
    EXPECT_EQ(context.data_parallel().size(), mesh.size(Axes::data));
    return Regression::training_step(batch, context);
  }
  const Mesh& mesh;
};

struct EndOnLastRank : Callback {
  std::string name() const override { return "end-on-last-rank"; }
  void step_end(FitContext& context, const StepReport& report) override {
    if (context.mesh.world().rank() + 1 == context.mesh.world().size() && report.step == 6)
      context.stop("last rank");
  }
};

TEST_F(ModuleTest, RanksAlongOtherAxesThanDataShareSamplesAndDecisions) {
  const Plane validation(7);
  recipe_.evaluate.every = "epoch";
  const auto fit_on = [&](int ranks, const MeshShape& shape) {
    FitResult result;
    const Plane train(40);
    comm::run_rank_threads(ranks, [&](Group& world) {
      const Mesh mesh = make_mesh(recipe_, world, shape);
      Placed module(mesh);
      Trainer trainer(recipe_, mesh, at::kCPU);
      trainer.add(std::make_shared<EndOnLastRank>());
      const FitResult rank_result = trainer.fit(module, train, &validation);
      EXPECT_EQ(rank_result.steps, 7)
          << "requested by one rank after step 6, carried out by all ranks after step 7";
      if (world.rank() == 0) result = rank_result;
    });
    return std::pair(result.best.value(),
                     SafetensorsFile(recipe_.output / "model/model.safetensors").load_all());
  };
  const auto [alone, weights] = fit_on(2, {.dp_replicate = 2});
  constexpr std::array turned = {Axis::tp, Axis::cp, Axis::dp_shard, Axis::dp_replicate, Axis::pp};
  for (const MeshShape& shape : {MeshShape{.dp_replicate = 2, .tp = 2},
                                 {.pp = 2, .dp_replicate = 2, .order = turned},
                                 {.dp_replicate = 2, .cp = 2}}) {
    recipe_.output = folder_.path() / shape.text();
    const auto [on_mesh, weights_on_mesh] = fit_on(4, shape);
    const double rounding = shape.cp > 1 ? 1e-6 : 0;  // sums over cp have different terms
    EXPECT_NEAR(alone.at("loss"), on_mesh.at("loss"), rounding) << shape.text();
    for (const auto& [name, tensor] : weights)
      EXPECT_TRUE(at::allclose(tensor, weights_on_mesh.at(name), rounding, rounding)) << shape.text() << name;
  }
}

struct KernelsChecked : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    EXPECT_EQ(context.forward.kernels, nn::Kernels::reference);
    return Regression::training_step(batch, context);
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    EXPECT_EQ(context.forward.kernels, nn::Kernels::reference);
    return Regression::validation_step(batch, context);
  }
};

TEST_F(ModuleTest, EvaluationUsesTheKernelsOfTheRecipe) {
  recipe_.evaluate.every = "epoch";
  recipe_.training.kernels = "reference";
  const Plane validation(7);
  EXPECT_TRUE(fit<KernelsChecked>(1, 40, &validation).best.has_value());
}

// Dropout by torch's own generator, as in torch::nn::Dropout.
struct WithTorchDropout : Regression {
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor x = at::dropout(batch.at("x"), 0.5, /*train=*/true);
    return loss_of_mean(at::mse_loss(net->forward(x), batch.at("y")), batch.count);
  }
};

TEST_F(ModuleTest, TorchsRandomNumbersContinueAfterAResume) {
  recipe_.checkpoint.every = "6";
  recipe_.checkpoint.keep_last = 0;
  recipe_.track.log_every = 1;
  fit<WithTorchDropout>(1);
  const auto whole = records();
  recipe_.resume = recipe_.output / "checkpoints/step-00000006";
  recipe_.output = folder_.path() / "resumed";
  at::rand(7);  // another state of the generator
  fit<WithTorchDropout>(1);
  const auto resumed = records();
  ASSERT_EQ(resumed.size(), 6u);
  for (size_t i = 0; i < resumed.size(); ++i) EXPECT_EQ(resumed[i]["loss"], whole[i + 6]["loss"]);
}

}  // namespace
}  // namespace stretto::trainer
