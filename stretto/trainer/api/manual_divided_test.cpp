#include <torch/nn/modules/dropout.h>

#include "stretto/base/message_support.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/optimizers.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/run/loop_fixture.h"

// Modules that step their optimizers themselves, with layers that are divided among ranks.
namespace stretto {
namespace {

using nn::TensorParallel;
using ::testing::HasSubstr;

// 5 inner columns, which 2 ranks divide unevenly, and a norm, which each rank has.
struct DividedNet : torch::nn::Module {
  explicit DividedNet(const TensorParallel& ranks) {
    norm = register_module("norm", std::make_shared<nn::RmsNorm>(4, 1e-6));
    up = register_module("up", std::make_shared<nn::ColumnLinear>(4, 5, ranks));
    down = register_module("down", std::make_shared<nn::RowLinear>(5, 1, ranks));
  }
  Tensor forward(const Tensor& x) const {
    return down->forward(at::tanh(up->forward(nn::norm(x, norm->all()))));
  }
  std::shared_ptr<nn::RmsNorm> norm;
  std::shared_ptr<nn::ColumnLinear> up;
  std::shared_ptr<nn::RowLinear> down;
};

struct DividedTask : Module {
  explicit DividedTask(const TensorParallel& ranks) : net(model(std::make_shared<DividedNet>(ranks))) {
    parameters_from(nn::initial_values(*net, 3, {.std = 0.5}));
  }
  bool automatic_optimization() const override { return false; }
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto loss = [&] {
      const Tensor y = net->forward(batch.at("x"));
      return Loss(at::mse_loss(y, batch.at("y"), at::Reduction::Sum), batch.count);
    };
    ManualOptimization& manual = context.manual();
    const Loss before = loss();
    manual.backward(before);
    const double norm = manual.step("inner");
    if (manual.updates()) context.log("inner_norm", norm);
    manual.step("outer", loss());
    return {before.sum.detach(), before.count};
  }
  Predictions predict_step(const Batch& batch, StepContext&) override {
    return net->forward(batch.at("x").to(net->up->weight.scalar_type())).to(at::kDouble);
  }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"inner", "[nu]*", optim::adamw({.lr = 0.02, .weight_decay = 0.3}),
                            optim::step_lr({.step_size = 5, .gamma = 0.5})});
    plan.several.push_back({"outer", "down.*", optim::sgd({.lr = 0.02, .momentum = 0.9})});
    return plan;
  }
  std::shared_ptr<DividedNet> net;
};

class ManualDividedTest : public trainer::LoopTest {
 protected:
  // The model and the values of each step.
  struct Found {
    NamedTensors model;
    Tensor predictions;
    std::vector<nlohmann::json> records;
  };
  Found train(int ranks, const std::string& name) {
    recipe_.output = folder_.path() / name;
    const trainer::Points points(27);
    GroupOptions options;
    options.deadline = std::chrono::seconds(20);
    Tensor predictions;
    comm::run_rank_threads(
        ranks, options,
        [&](Group& group) {
          const Mesh mesh = make_mesh(recipe_, group);
          DividedTask task({&mesh.group(Axis::tp)});
          Trainer trainer(recipe_, mesh, at::kCPU);
          trainer.fit(task, points, nullptr);
          DividedTask saved({&mesh.group(Axis::tp)});
          const Tensor rows = trainer.predict(saved, points).rows;
          if (group.rank() == 0) predictions = rows;
        },
        backend_);
    return {SafetensorsFile(recipe_.output / "model/model.safetensors").load_all(), predictions, records()};
  }
};

TEST_F(ManualDividedTest, TakesTheStepsOfWholeLayers) {
  recipe_.checkpoint.monitor = std::nullopt;
  recipe_.track.log_every = 1;
  recipe_.training.max_grad_norm = 0.5;
  // Only the last micro-batch of a rank sees the step of "inner" in the loss of "outer".
  const Found by_one = train(1, "by-1"), by_two = train(2, "by-2");
  ASSERT_EQ(by_one.records.size(), 21U);
  recipe_.training.mesh.tp = 2;
  for (const std::string backend : {"shm", "tcp"}) {
    backend_ = backend;
    for (const auto& [strategy, ranks] : {std::pair("ddp", 2), {"ddp", 4}, {"zero1", 4}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", strategy, ranks, backend));
      recipe_.training.strategy = strategy;
      const Found& whole = ranks == 2 ? by_one : by_two;
      const Found divided = train(ranks, fmt::format("{}-{}-{}", strategy, ranks, backend));
      ASSERT_EQ(divided.records.size(), whole.records.size());
      for (size_t step = 0; step < whole.records.size(); ++step)
        for (const char* value : {"loss", "grad_norm", "inner_norm"})
          EXPECT_NEAR(divided.records[step].at(value).get<double>(),
                      whole.records[step].at(value).get<double>(), 1e-9)
              << value << " of step " << step;
      for (const auto& [name, tensor] : whole.model)
        EXPECT_TRUE(divided.model.at(name).allclose(tensor, 1e-9, 1e-12)) << name;
      EXPECT_TRUE(divided.predictions.allclose(whole.predictions, 1e-9, 1e-12));
    }
  }
}

TEST_F(ManualDividedTest, ModulesThatRanksCannotDivideAreRefused) {
  recipe_.training.mesh.tp = 2;
  const trainer::Points points(27);
  const auto expect_refusal = [&](const std::string& reason, const auto& make_task) {
    recipe_.output = folder_.path() / reason;
    comm::run_rank_threads(2, [&](Group& group) {
      const Mesh mesh = make_mesh(recipe_, group);
      const auto task = make_task(TensorParallel{&mesh.group(Axis::tp)});
      EXPECT_THAT(
          message_of<ConfigError>([&] { Trainer(recipe_, mesh, at::kCPU).fit(*task, points, nullptr); }),
          HasSubstr(reason));
    });
  };
  expect_refusal("no parameter of the module is divided",
                 [](const TensorParallel&) { return std::make_shared<trainer::Line>(); });
  expect_refusal("need equal masks", [](const TensorParallel& ranks) {
    auto task = std::make_shared<DividedTask>(ranks);
    task->net->register_module("dropout", torch::nn::Dropout(0.5));
    return task;
  });
  recipe_.training.mesh.sequence_parallel = true;
  expect_refusal("no layer of the module divides rows",
                 [](const TensorParallel& ranks) { return std::make_shared<DividedTask>(ranks); });
}

}  // namespace
}  // namespace stretto
