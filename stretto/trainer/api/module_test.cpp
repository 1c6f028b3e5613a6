#include "stretto/trainer/api/module.h"

#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/dropout.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim/optimizers.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/records/logged_values.h"

namespace stretto {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Sample i has x = (sin i, cos i) and y = 2 sin i - cos i.
class Plane : public data::SampleDataset {
 public:
  using SampleDataset::SampleDataset;
  data::Sample sample(int64_t index) const override {
    const double s = std::sin(index), c = std::cos(index);
    return {{"x", at::tensor({s, c})}, {"y", at::scalar_tensor(2 * s - c, at::kDouble)}};
  }
};

struct Net : torch::nn::Module {
  Net() {
    for (const char* name : {"first", "second"}) register_module(name, std::make_shared<nn::Linear>(2, 1));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.25);
  }
  Tensor forward(const Tensor& x) const {
    Tensor sum = at::zeros({x.size(0)}, x.options());
    for (const auto& layer : children()) sum = sum + layer->as<nn::Linear>()->forward(x).squeeze(1);
    return sum;
  }
};

// The minimal module.
struct Regression : Module {
  Regression() : net(model(std::make_shared<Net>())) {}
  Loss training_step(const Batch& batch, StepContext&) override {
    return loss_of_mean(at::mse_loss(net->forward(batch.at("x")), batch.at("y")), batch.count);
  }
  std::shared_ptr<Net> net;
};

class SeamTest : public ::testing::Test {
 protected:
  SeamTest() {
    recipe_.training.max_steps = 12;
    recipe_.training.global_batch_size = 10;
    recipe_.training.precision = "fp64";
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.05;
    recipe_.track.progress = "off";
    recipe_.track.log_every = 4;
    recipe_.evaluate.every = "never";
    recipe_.output = folder_.path() / "run";
  }
  template <class M>
  FitResult fit(int ranks, int64_t samples = 40, const Plane* validation = nullptr) const {
    const Plane train(samples);
    FitResult result;
    comm::run_rank_threads(ranks, [&](Group& group) {
      M module;
      const Mesh mesh = make_mesh(recipe_, group);
      const FitResult rank_result = Trainer(recipe_, mesh, at::kCPU).fit(module, train, validation);
      if (group.rank() == 0) result = rank_result;
    });
    return result;
  }
  std::vector<nlohmann::json> records() const {
    std::vector<nlohmann::json> records;
    const std::string text = read_file(recipe_.output / "metrics.jsonl");
    for (const auto line : split(text, '\n')) {
      if (!line.empty()) records.push_back(nlohmann::json::parse(line));
    }
    return records;
  }

  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(SeamTest, ATrainingStepIsEnough) {
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

NamedTensors ones(int64_t width = 2) {
  NamedTensors values;
  for (const char* name : {"first", "second"}) {
    values[std::string(name) + ".weight"] = at::ones({1, width});
    values[std::string(name) + ".bias"] = at::ones({1});
  }
  return values;
}

struct ReadsOnes : Regression {
  ReadsOnes() { parameters_from(std::make_unique<MemorySource>(ones())); }
};
struct HoldsOnes : Regression {
  HoldsOnes() {
    at::NoGradGuard no_grad;
    for (Tensor& parameter : net->parameters()) parameter.fill_(1);
  }
};
struct ReadsWiderOnes : Regression {
  ReadsWiderOnes() { parameters_from(std::make_unique<MemorySource>(ones(3))); }
};
struct ReadsTwice : ReadsOnes {
  ReadsTwice() { parameters_from(std::make_unique<MemorySource>(ones())); }
};
struct ReadsNull : Regression {
  ReadsNull() { parameters_from(nullptr); }
};

TEST_F(SeamTest, ParametersOfASourceTrainLikeThoseOfTheModule) {
  const auto trained = [&](auto fitting) {
    fitting();
    return read_file(recipe_.output / "model/model.safetensors");
  };
  for (const char* strategy : {"ddp", "fsdp"}) {
    recipe_.training.strategy = strategy;
    recipe_.output = folder_.path() / (std::string(strategy) + "-held");
    const std::string held = trained([&] { fit<HoldsOnes>(2); });
    recipe_.output = folder_.path() / (std::string(strategy) + "-read");
    EXPECT_EQ(trained([&] { fit<ReadsOnes>(2); }), held) << strategy;
  }
}

// An evaluation or a run reads the source; later ones use the weights that result from it.
TEST_F(SeamTest, ASourceIsReadOnce) {
  const Plane train(40);
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe_, group);
    ReadsOnes module;
    EXPECT_EQ(module.net->named_parameters()["first.weight"].storage().nbytes(), sizeof(float));
    const double before = Trainer(recipe_, mesh, at::kCPU).test(module, train, {.load = false}).at("loss");
    EXPECT_TRUE(module.net->named_parameters()["first.weight"].eq(1).all().item<bool>());
    Trainer(recipe_, mesh, at::kCPU).fit(module, train, nullptr);
    const double after = Trainer(recipe_, mesh, at::kCPU).test(module, train, {.load = false}).at("loss");
    EXPECT_LT(after, before);
    ReadsOnes fitted;
    Trainer(recipe_, mesh, at::kCPU).fit(fitted, train, nullptr);
    EXPECT_EQ(Trainer(recipe_, mesh, at::kCPU).test(fitted, train, {.load = false}).at("loss"), after);
  });
}

TEST_F(SeamTest, SourcesThatDoNotFitAreRefused) {
  EXPECT_THAT([] { ReadsWiderOnes(); },
              ThrowsMessage<DataError>(
                  HasSubstr("the source's first.weight is [1, 3], and the parameter is [1, 2]")));
  EXPECT_THAT([] { ReadsTwice(); },
              ThrowsMessage<ConfigError>(HasSubstr("parameters_from() was called twice")));
  EXPECT_THAT([] { ReadsNull(); }, ThrowsMessage<ConfigError>(HasSubstr("called with a null pointer")));
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

TEST_F(SeamTest, RanksAlongOtherAxesThanDataShareSamplesAndDecisions) {
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

TEST_F(SeamTest, EvaluationUsesTheKernelsOfTheRecipe) {
  recipe_.evaluate.every = "epoch";
  recipe_.training.kernels = "reference";
  const Plane validation(7);
  EXPECT_TRUE(fit<KernelsChecked>(1, 40, &validation).best.has_value());
}

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

TEST_F(SeamTest, AGradientThatIsNotFiniteIsNamedByRankAndParameter) {
  EXPECT_THAT(
      [&] { fit<NanGradientOnRank1>(3); },
      ThrowsMessage<Error>(HasSubstr(
          "step 3: a gradient is not finite (first on rank 1, first in the gradient of first.weight)")));
  recipe_.training.on_nonfinite = "skip";
  testing::internal::CaptureStderr();
  EXPECT_EQ(fit<NanGradientOnRank1>(3).steps, 12);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr(
          "a gradient is not finite (first on rank 1, first in the gradient of first.weight); skipping step 3"));
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
TEST_F(SeamTest, ASkippedStepDoesNotChangeRandomNumbersAndBuffers) {
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

struct HugeGradient : Regression {
  Loss training_step(const Batch& batch, StepContext&) override {
    return {net->parameters().front().sum() * 3e38, static_cast<double>(batch.count)};
  }
};

TEST_F(SeamTest, NoRankIsBlamedForAGradientThatOverflowsInTheSum) {
  recipe_.training.precision = "fp32";
  EXPECT_THAT([&] { fit<HugeGradient>(2); },
              ThrowsMessage<Error>(HasSubstr(
                  "is not finite (first in the gradient of first.weight, only in the sum over all ranks)")));
}

// Finite losses, and a last step that makes the weights infinite.
TEST_F(SeamTest, WeightsThatOverflowAreNotSavedUnlessAllowed) {
  recipe_.training.precision = "fp32";
  recipe_.training.max_steps = 1;
  recipe_.optimizer.as<optim::AdamwOptions>().lr = 1e300;
  recipe_.checkpoint.every = "1";
  recipe_.checkpoint.async = false;
  EXPECT_THAT([&] { fit<SinglePrecision>(2); },
              ThrowsMessage<Error>(::testing::AllOf(
                  HasSubstr("step 1: the weights overflowed: first.bias holds NaN or infinity"),
                  HasSubstr("checkpoint.allow_nonfinite: true"))));
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "model"));
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "checkpoints/step-00000001"));
  recipe_.checkpoint.allow_nonfinite = true;
  fit<SinglePrecision>(2);
  EXPECT_TRUE(std::filesystem::exists(recipe_.output / "model/model.safetensors"));
}

// Logged values are means over all samples of the window, independently of ranks and micro-batches.
struct Logging : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.log("first_sample", static_cast<double>(batch.sample_ids[0]), 1);
    context.log("mean_y", batch.at("y").mean().item<double>());
    return Regression::training_step(batch, context);
  }
};

TEST_F(SeamTest, LoggedValuesAreMeansOverWindowAndRanks) {
  recipe_.training.max_steps = std::nullopt;
  recipe_.training.epochs = 1;
  recipe_.training.batch_size = 2;
  recipe_.track.log_every = 100;
  double expected = 0;
  for (int64_t i = 0; i < 43; ++i) expected += Plane(43).sample(i).at("y").item<double>() / 43;
  for (const int ranks : {1, 2}) {
    recipe_.training.global_batch_size = 4 * ranks;
    recipe_.output = folder_.path() / std::to_string(ranks);
    fit<Logging>(ranks, 43);
    ASSERT_EQ(records().size(), 1u);
    EXPECT_NEAR(records()[0].at("mean_y"), expected, 1e-12);
    EXPECT_TRUE(records()[0].contains("first_sample"));
  }
}

TEST_F(SeamTest, LoggedValuesSurviveAResumeInsideTheirWindow) {
  recipe_.checkpoint.every = "6";
  recipe_.checkpoint.keep_last = 0;
  fit<Logging>(2);
  const auto whole = records();
  recipe_.resume = recipe_.output / "checkpoints/step-00000006";
  recipe_.output = folder_.path() / "resumed";
  EXPECT_EQ(fit<Logging>(2).resumed_after, 6);
  const auto resumed = records();
  ASSERT_EQ(resumed.size(), 2u);
  for (const char* name : {"loss", "mean_y", "first_sample"})
    EXPECT_EQ(resumed[0][name], whole[1][name]) << name;
}

// Dropout by torch's own generator, as in torch::nn::Dropout.
struct WithTorchDropout : Regression {
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor x = at::dropout(batch.at("x"), 0.5, /*train=*/true);
    return loss_of_mean(at::mse_loss(net->forward(x), batch.at("y")), batch.count);
  }
};

TEST_F(SeamTest, TorchsRandomNumbersContinueAfterAResume) {
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

struct LoggingEvaluation : Regression {
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    EXPECT_FALSE(context.forward.training);
    context.log("mean_y", batch.at("y").mean().item<double>());
    return {};
  }
};

TEST_F(SeamTest, AnEvaluationMayLogMeans) {
  recipe_.evaluate.every = "epoch";
  recipe_.evaluate.batch_size = 2;
  recipe_.checkpoint.monitor = "mean_y";
  recipe_.checkpoint.mode = "max";
  const Plane validation(7);
  double expected = 0;
  for (int64_t i = 0; i < 7; ++i) expected += validation.sample(i).at("y").item<double>() / 7;
  EXPECT_NEAR(fit<LoggingEvaluation>(2, 40, &validation).best->at("mean_y"), expected, 1e-12);
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

TEST_F(SeamTest, TheModuleMakesTheBatches) { EXPECT_EQ(fit<Collating>(2).steps, 12); }

struct Collective : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const double samples =
        context.data_parallel().all_reduce(at::tensor({static_cast<double>(batch.count)})).item<double>();
    EXPECT_EQ(samples, context.data_parallel().size() == 1 ? batch.count : 10);
    return Regression::training_step(batch, context);
  }
};

TEST_F(SeamTest, AStepMayReduceOverTheRanks) {
  EXPECT_EQ(fit<Collective>(1).steps, 12);
  EXPECT_EQ(fit<Collective>(2).steps, 12);
}

TEST_F(SeamTest, ACollectiveThatWouldNeverReturnIsRefused) {
  EXPECT_THAT([&] { fit<Collective>(2, 41); },  // a last batch of one sample
              ThrowsMessage<ConfigError>(HasSubstr("too few samples for 2 ranks")));
}

struct Planned : Regression {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.optimizer = optim::sgd({.lr = 0.1, .weight_decay = 0.5});
    plan.schedule = optim::constant();
    plan.groups = {{.pattern = "first.weight", .frozen = true},
                   {.pattern = "*.bias", .lr_factor = 0},
                   {.pattern = "second.*", .lr_factor = 0.5, .weight_decay = false}};
    return plan;
  }
};

// Compares with one step for each group, computed in the test.
TEST_F(SeamTest, ParameterGroupsHaveTheirOwnSettings) {
  recipe_.training.max_steps = 1;
  recipe_.training.global_batch_size = 40;
  recipe_.training.max_grad_norm = 0;
  fit<Planned>(2);
  const NamedTensors weights = SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  Regression by_hand;
  by_hand.root().to(at::kDouble);
  trainer::LoggedWindows logged;
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh(group, {});
    StepContext context(mesh, logged, true);
    std::vector<int64_t> all(40);
    std::iota(all.begin(), all.end(), int64_t{0});
    const Loss loss = by_hand.training_step(make_batch(by_hand, Plane(40), all), context);
    (loss.sum / loss.count).backward();
  });
  const Tensor second = by_hand.root().named_parameters()["second.weight"];
  EXPECT_TRUE(at::allclose(weights.at("second.weight"), second.detach() - 0.05 * second.grad(), 0, 1e-12));
  EXPECT_TRUE(at::equal(weights.at("first.weight"), at::full({1, 2}, 0.25, at::kDouble)));
  EXPECT_TRUE(at::equal(weights.at("second.bias"), at::full({1}, 0.25, at::kDouble)));
}

template <int kind>
struct Wrong : Regression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    Loss loss = Regression::training_step(batch, context);
    if (kind == 0) loss.sum = loss.sum.detach();
    if (kind == 1) loss.sum = loss.sum.expand({3});
    if (kind == 2) loss.sum = Tensor();
    if (kind == 3) loss.count = 0;
    if (kind == 4) loss.count = -1;
    if (kind == 5) context.log("loss", 1);
    if (kind == 6) context.log("x", 1, -1);
    return loss;
  }
};

TEST_F(SeamTest, LossesThatDoNotRequireGradAreRefused) {
  const auto message = [&](auto module, const char* text) {
    EXPECT_THAT([&] { fit<decltype(module)>(2); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  message(Wrong<0>(), "training_step returned a loss that does not require grad");
  message(Wrong<1>(),
          "training_step returned [3] Double as the loss; expected the sum over the batch, a single element");
  message(Wrong<2>(), "training_step returned no tensor as the loss");
  message(Wrong<3>(), "step 1: the losses of the global batch count 0 samples");
  message(Wrong<4>(), "training_step returned -1 as the loss's count");
  message(Wrong<5>(), "log(\"loss\"): the Trainer logs this name itself");
  message(Wrong<6>(), "the weight is -1");
}

struct Modelless : Module {
  Loss training_step(const Batch&, StepContext&) override { return {}; }
};
struct TwoModels : Regression {
  TwoModels() { model(std::make_shared<Net>()); }
};
struct RowsAlone : Regression {
  Predictions validation_step(const Batch& batch, StepContext&) override {
    return at::zeros({batch.count, 1}, at::kDouble);
  }
};
template <int kind>
struct WrongPlan : Regression {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    if (kind == 0) plan.groups = {{.pattern = "third.*", .frozen = true}};
    if (kind == 1) plan.groups = {{.pattern = "*"}, {.pattern = "first.*"}};
    if (kind == 2) plan.groups = {{.pattern = "*", .lr_factor = -1}};
    if (kind == 3) plan.groups = {{.pattern = "*", .frozen = true}};
    if (kind == 4) plan.optimizer = nullptr;
    return plan;
  }
};

TEST_F(SeamTest, ModulesThatCannotBeTrainedAreRefused) {
  const auto message = [&](auto fitting, const char* text) {
    EXPECT_THAT(fitting, ThrowsMessage<ConfigError>(HasSubstr(text)));
  };
  message([&] { fit<Modelless>(1); }, "the module has no model: register it in the constructor");
  message([&] { fit<TwoModels>(1); }, "model() was called twice");
  message([&] { fit<WrongPlan<0>>(1); }, "no trainable parameter matches \"third.*\"");
  message([&] { fit<WrongPlan<0>>(1); }, "named first.weight, first.bias, second.weight, second.bias");
  message([&] { fit<WrongPlan<1>>(1); }, "matches \"first.*\", or all matches belong to an earlier group");
  message([&] { fit<WrongPlan<2>>(1); }, "the lr_factor of \"*\" is -1");
  message([&] { fit<WrongPlan<3>>(1); }, "all of them are frozen");
  message([&] { fit<WrongPlan<4>>(1); }, "a plan without an optimizer");
  recipe_.evaluate.every = "epoch";
  const Plane validation(7);
  message([&] { fit<RowsAlone>(1, 40, &validation); }, "override metrics()");
  recipe_.checkpoint.monitor = "mean_y";
  message([&] { fit<LoggingEvaluation>(1, 40, &validation); }, "set checkpoint.mode to max or min");
}

}  // namespace
}  // namespace stretto
