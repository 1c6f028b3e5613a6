#include "stretto/trainer/api/parameter_rules.h"

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
#include "stretto/optim_config/schedules.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/records/records_fixture.h"

// Tests the section parameters and optimizer.scale_lr, clipping by value, and warm-up in samples.
namespace stretto::trainer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// embeddings.{weight}, layer.{0,1}.{weight,bias}, norm.{weight,bias}, head.{weight,bias}
struct LayeredNet : torch::nn::Module {
  LayeredNet() {
    embeddings = register_module("embeddings", std::make_shared<nn::Linear>(3, 3));
    auto layers = std::make_shared<torch::nn::Module>();
    for (int64_t i = 0; i < 2; ++i)
      layer.push_back(
          layers->register_module(std::to_string(i), nn::sharded(std::make_shared<nn::Linear>(3, 3))));
    register_module("layer", layers);
    norm = register_module("norm", std::make_shared<nn::LayerNorm>(3, 1e-5));
    head = register_module("head", std::make_shared<nn::Linear>(3, 1));
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters())
      parameter.copy_(at::linspace(-0.5, 0.7, parameter.numel(), at::kDouble).view_as(parameter));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = embeddings->forward(x);
    for (const auto& each : layer) y = at::tanh(each->forward(y));
    return head->forward(at::layer_norm(y, {3}, norm->weight, norm->bias, 1e-5));
  }
  std::shared_ptr<nn::Linear> embeddings, head;
  std::vector<std::shared_ptr<nn::Sharded<nn::Linear>>> layer;
  std::shared_ptr<nn::LayerNorm> norm;
};

class Spots : public data::SampleDataset {
 public:
  explicit Spots(int64_t count) : SampleDataset(count) {}
  data::Sample sample(int64_t index) const override {
    const Tensor x = at::sin(at::arange(1, 4, at::kDouble) * static_cast<double>(index + 1));
    return {{"x", x}, {"y", x.prod().unsqueeze(0)}};
  }
};

struct NetTask : Module {
  NetTask() : net(model(std::make_shared<LayeredNet>())) { net->to(at::kDouble); }
  Loss training_step(const Batch& batch, StepContext&) override {
    return loss_of_mean(at::mse_loss(net->forward(batch.at("x")), batch.at("y")), batch.count);
  }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.groups = {{.pattern = "head.*", .lr_factor = 2}};
    return plan;
  }
  std::shared_ptr<LayeredNet> net;
};

class RulesTest : public ::testing::Test {
 protected:
  RulesTest() {
    recipe_.training.max_steps = 6;
    recipe_.training.global_batch_size = 4;
    recipe_.training.precision = "fp64";
    recipe_.training.max_grad_norm = 0;
    recipe_.optimizer = optim::SgdOptions{.lr = 0.1, .weight_decay = 0.1};
    recipe_.evaluate.every = "never";
    recipe_.track.progress = "off";
    recipe_.track.log_every = 1;
    recipe_.output = folder_.path() / "run";
  }
  NamedTensors train(int ranks = 1) {
    const Spots samples(22);
    NamedTensors weights;
    comm::run_rank_threads(ranks, [&](Group& group) {
      NetTask task;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer(recipe_, mesh, at::kCPU).fit(task, samples, nullptr);
    });
    const SafetensorsFile file(recipe_.output / "model/model.safetensors");
    for (const auto& item : NetTask().root().named_parameters()) weights[item.key()] = file.load(item.key());
    return weights;
  }
  std::vector<double> logged(const char* name) const {
    std::vector<double> values;
    for (const auto& record : records_of(recipe_.output)) values.push_back(record.at(name));
    return values;
  }
  std::map<std::string, parallel::NamedParameter> grouped() const {
    NetTask task;
    std::map<std::string, parallel::NamedParameter> parameters;
    const auto groups = combine_groups(task.root(), recipe_, task.configure_optimizers({}).groups);
    for (auto& parameter : parallel::collect_tensors(task.root(), groups).trainable)
      parameters.emplace(parameter.name, parameter);
    return parameters;
  }

  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(RulesTest, CombineWithTheModulesGroups) {
  auto& rules = recipe_.parameters;
  rules.freeze = {"embeddings.*"};
  rules.lr_factors = {"layer.*.bias=0.5", "layer.*=4", "head.bias=3"};
  rules.weight_decay = {"norm.weight"};
  rules.no_weight_decay = {"layer.1.weight"};
  const auto parameters = grouped();
  EXPECT_EQ(parameters.size(), 8u) << "the embeddings are frozen";
  const auto expect = [&](const char* name, double lr_factor, bool weight_decay) {
    EXPECT_EQ(parameters.at(name).lr_factor, lr_factor) << name;
    EXPECT_EQ(parameters.at(name).weight_decay, weight_decay) << name;
  };
  expect("layer.0.weight", 4, true);
  expect("layer.0.bias", 0.5, false);
  expect("layer.1.weight", 4, false);
  expect("norm.weight", 1, true);
  expect("norm.bias", 1, false);
  expect("head.weight", 2, true);
  expect("head.bias", 6, false);
}

TEST_F(RulesTest, LayersDecay) {
  recipe_.parameters.layer_decay = 0.5;
  const auto parameters = grouped();
  EXPECT_EQ(parameters.at("embeddings.weight").lr_factor, 0.125);
  EXPECT_EQ(parameters.at("layer.0.bias").lr_factor, 0.25);
  EXPECT_EQ(parameters.at("layer.1.weight").lr_factor, 0.5);
  EXPECT_EQ(parameters.at("norm.weight").lr_factor, 1);
  EXPECT_EQ(parameters.at("head.weight").lr_factor, 2);
  EXPECT_THAT(layer_depths({"bert.emb.w", "bert.layer.0.a.1.w", "bert.layer.11.w", "pooler.w", "cls.0.w"}),
              ElementsAre(0, 1, 12, 13, 13));
  EXPECT_TRUE(layer_depths({"first.weight", "second.bias"}).empty());
}

TEST_F(RulesTest, ArePrintedWithCounts) {
  recipe_.parameters.lr_factors = {"layer.*=0.5"};
  NetTask task;
  const auto groups = combine_groups(task.root(), recipe_, {});
  EXPECT_EQ(describe_groups(parallel::collect_tensors(task.root(), groups), 0.1, "AdamW"),
            "groups     lr 0.1, weight decay: 2 tensors, 12 parameters\n"
            "           lr 0.1, no weight decay: 4 tensors, 10 parameters\n"
            "           lr 0.05, weight decay: 2 tensors, 18 parameters\n"
            "           lr 0.05, no weight decay: 2 tensors, 6 parameters");
  for (const char* without : {"LBFGS", "Rprop", "SparseAdam"}) {
    EXPECT_EQ(describe_groups(parallel::collect_tensors(task.root(), groups), 0.1, without),
              "groups     lr 0.1: 6 tensors, 22 parameters\n"
              "           lr 0.05: 4 tensors, 24 parameters")
        << without;
  }
}

TEST_F(RulesTest, PatternsWithoutParametersAreRefused) {
  for (const char* setting : {"freeze", "lr_factors", "weight_decay", "no_weight_decay"}) {
    const std::string value = setting == std::string("lr_factors") ? "encoder.*=2" : "encoder.*";
    const Recipe recipe = parse_recipe(fmt::format("parameters: {{{}: [\"{}\"]}}", setting, value), "r.yaml");
    NetTask task;
    EXPECT_THAT(
        message_of<ConfigError>([&] { combine_groups(task.root(), recipe, {}); }),
        AllOf(HasSubstr(fmt::format("parameters.{}: no trainable parameter matches \"encoder.*\"", setting)),
              HasSubstr("r.yaml:1:"), HasSubstr("parameters are named embeddings.weight, ")));
  }
  EXPECT_THAT(
      message_of<ConfigError>([] { parse_recipe("parameters: {lr_factors: [\"head.*\"]}", "r.yaml"); }),
      HasSubstr("\"head.*\" is not a pattern and a factor: head.*=3"));
}

// Frozen parameters keep their values; the others are trained equally under any strategy and number of ranks.
TEST_F(RulesTest, HoldUnderEveryStrategy) {
  recipe_.parameters.freeze = {"layer.0.*"};
  recipe_.parameters.lr_factors = {"embeddings.*=0.25"};
  recipe_.parameters.layer_decay = 0.9;
  recipe_.training.max_grad_value = 0.02;
  recipe_.training.max_grad_norm = 0.05;
  const NamedTensors expected = train();
  NetTask before;
  for (const auto& item : before.root().named_parameters()) {
    const bool frozen = item.key().starts_with("layer.0.");
    EXPECT_EQ(expected.at(item.key()).equal(item.value()), frozen) << item.key();
  }
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp", "hsdp"}) {
    for (const int ranks : {1, 2}) {
      recipe_.training.strategy = strategy;
      recipe_.output = folder_.path() / fmt::format("{}-{}", strategy, ranks);
      for (const auto& [name, tensor] : train(ranks))
        EXPECT_TRUE(tensor.allclose(expected.at(name), 1e-9, 1e-12))
            << strategy << " " << ranks << " " << name;
    }
  }
}

// One step of SGD without weight decay: no element moves by more than lr x the limit.
TEST_F(RulesTest, GradientsAreClippedByValue) {
  recipe_.optimizer = optim::SgdOptions{.lr = 0.1};
  recipe_.scheduler = optim::ConstantOptions{};
  recipe_.training.max_steps = 1;
  recipe_.training.max_grad_value = 1e-3;
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    const NamedTensors after = train(ranks);
    NetTask before;
    double most = 0;
    for (const auto& item : before.root().named_parameters()) {
      const double factor = item.key().starts_with("head.") ? 2 : 1;
      const double moved = (after.at(item.key()) - item.value()).abs().max().item<double>() / factor;
      EXPECT_LE(moved, 1e-4 * (1 + 1e-9)) << item.key();
      most = std::max(most, moved);
    }
    EXPECT_NEAR(most, 1e-4, 1e-12);
    EXPECT_GT(logged("grad_norm")[0], 0.01) << "the norm before clipping";
  }
}

TEST_F(RulesTest, TheRateFollowsTheBatchSize) {
  recipe_.scheduler = optim::ConstantOptions{};
  recipe_.optimizer.scale_lr = "linear";
  recipe_.optimizer.base_batch_size = 16;
  train();
  EXPECT_THAT(logged("lr"), ::testing::Each(0.025));
  recipe_.optimizer.scale_lr = "sqrt";
  recipe_.output = folder_.path() / "sqrt";
  train(2);
  EXPECT_THAT(logged("lr"), ::testing::Each(0.05));
}

TEST_F(RulesTest, WarmUpInSamples) {
  recipe_.scheduler.type = "ConstantWithWarmup";
  recipe_.scheduler.num_warmup_samples = 14;  // 3.5 steps
  train(2);
  EXPECT_THAT(logged("lr"), ::testing::Pointwise(::testing::DoubleNear(1e-15),
                                                 std::vector<double>{0, 0.025, 0.05, 0.075, 0.1, 0.1}));
}

TEST(Rules, SettingsThatContradictAreRefused) {
  const auto refuses = [](const std::string& yaml, const std::string& message) {
    EXPECT_THAT(message_of<ConfigError>([&] {
                  check_recipe(parse_recipe(yaml + "\nevaluate: {every: never}\n", "r.yaml"), Verb::fit);
                }),
                HasSubstr(message))
        << yaml;
  };
  refuses("optimizer: {scale_lr: linear}", "linear needs optimizer.base_batch_size");
  refuses("optimizer: {base_batch_size: 8}", "it has no effect with scale_lr: none");
  refuses("optimizer: {scale_lr: sqrt, base_batch_size: 8}\ntraining: {max_tokens: 100}",
          "the global batch size varies with training.max_tokens");
  refuses(
      "optimizer: {type: SGD, momentum: 0.9, scale_lr: sqrt, base_batch_size: 8}\nscheduler: {type: OneCycleLR, max_lr: 1}",
      "OneCycleLR sets the rates itself");
  refuses("scheduler: {type: StepLR, step_size: 3, num_warmup_samples: 8}", "StepLR has no warm-up");
  refuses("scheduler: {num_warmup_samples: 8, warmup_ratio: 0.1}", "the warm-up is set twice");
  refuses("scheduler: {num_warmup_samples: 8}\ntraining: {max_tokens: 100}",
          "the number of samples per step varies");
}

}  // namespace
}  // namespace stretto::trainer
