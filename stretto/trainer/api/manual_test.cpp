#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "stretto/optim/optimizers.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/run/loop_fixture.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Gan : torch::nn::Module {
  Gan() {
    generator = register_module("generator", std::make_shared<torch::nn::LinearImpl>(2, 4));
    discriminator = register_module("discriminator", std::make_shared<torch::nn::LinearImpl>(4, 1));
    at::NoGradGuard no_grad;
    double value = -0.4;
    for (Tensor& parameter : parameters()) {
      parameter.copy_(at::linspace(value, value + 0.3, parameter.numel()).view_as(parameter));
      value += 0.2;
    }
  }
  std::shared_ptr<torch::nn::LinearImpl> generator, discriminator;
};

// The noise of a sample is a function of its index, so that it does not depend on the number of ranks.
Tensor noise_of(const Batch& batch) {
  const Tensor index = at::tensor(batch.sample_ids, at::kDouble);
  return at::stack({at::sin(index * 3), at::cos(index * 5)}, 1);
}

struct GanTask : Module {
  GanTask() : net(model(std::make_shared<Gan>())) {}
  bool automatic_optimization() const override { return false; }
  Loss training_step(const Batch& batch, StepContext& context) override {
    ManualOptimization& manual = context.manual();
    const Tensor real = batch.at("x"), fake = net->generator->forward(noise_of(batch));
    const auto loss = [&](const Tensor& logits, double target) {
      const Tensor sum = at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target), {}, {},
                                                              at::Reduction::Sum);
      return Loss(sum, batch.count);
    };
    const Loss on_real = loss(net->discriminator->forward(real), 1);
    manual.backward(on_real);
    manual.backward({loss(net->discriminator->forward(fake.detach()), 0).sum, 0});
    manual.step("discriminator");
    const Loss generated = loss(net->discriminator->forward(fake), 1);
    manual.backward(generated);
    manual.step("generator");
    context.log("loss_generator", generated.sum.item<double>() / generated.count);
    context.log("lr_generator", manual.lr("generator"));
    return on_real;
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    const Tensor logits = net->discriminator->forward(batch.at("x"));
    context.log("loss", at::softplus(-logits).mean().item<double>());
    return {};
  }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"generator", "generator.*", optim::adamw({.lr = 0.05, .weight_decay = 0.1}),
                            optim::step_lr({.step_size = 5, .gamma = 0.5})});
    plan.several.push_back({"discriminator", "discriminator.*", optim::sgd({.lr = 0.1, .momentum = 0.9})});
    return plan;
  }
  std::shared_ptr<Gan> net;
  int64_t samples = 0;  // of the fixture
};

constexpr std::pair<const char*, const char*> strategies_and_backends[] = {
    {"ddp", "shm"},   {"ddp", "tcp"},   {"zero1", "shm"}, {"zero1", "tcp"},
    {"zero2", "shm"}, {"zero2", "tcp"}, {"fsdp", "shm"},  {"fsdp", "tcp"}};

class ManualTest : public trainer::LoopTest {
 protected:
  ManualTest() {
    recipe_.training.epochs = 2;
    recipe_.track.log_every = 1;
    recipe_.evaluate.every = "never";  // the model is then that of the last step
  }
  template <class Task = GanTask>
  NamedTensors train(int ranks, const std::string& name) {
    recipe_.output = folder_.path() / name;
    fit<Task>(ranks);
    return SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  }
};

// The generator's schedule follows a metric that never improves enough.
struct FollowsMetric : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan = GanTask::configure_optimizers(std::move(plan));
    plan.several[0].schedule = optim::reduce_lr_on_plateau({.factor = 0.5, .patience = 0, .threshold = 1e6});
    return plan;
  }
};

TEST_F(ManualTest, AScheduleFollowsTheMetricOfEvaluations) {
  recipe_.evaluate.every = 2;
  train<FollowsMetric>(1, "run");
  std::vector<double> rates;
  for (const auto& record : records())
    if (record.contains("lr_generator")) rates.push_back(record.at("lr_generator"));
  ASSERT_EQ(rates.size(), 14U);
  EXPECT_EQ(rates[3], 0.05);  // the first evaluation is the best one
  EXPECT_DOUBLE_EQ(rates[4], 0.025);
  EXPECT_DOUBLE_EQ(rates[6], 0.0125);
}

// Trains the same GAN in a plain torch loop, over the batches of the run.
struct RecordsBatches : GanTask {
  static inline std::vector<std::vector<int64_t>> batches;
  Loss training_step(const Batch& batch, StepContext& context) override {
    batches.push_back(batch.sample_ids);
    return GanTask::training_step(batch, context);
  }
};

TEST_F(ManualTest, AGanTrainsAsInAPlainTorchLoop) {
  recipe_.training.max_grad_norm = 0;
  RecordsBatches::batches.clear();
  const NamedTensors found = train<RecordsBatches>(1, "run");
  ASSERT_EQ(RecordsBatches::batches.size(), 14U);
  Gan net;
  net.to(at::kDouble);
  torch::optim::SGD discriminator(net.discriminator->parameters(),
                                  torch::optim::SGDOptions(0.1).momentum(0.9));
  // By default, biases have no weight decay.
  torch::optim::AdamW weights({net.generator->weight}, torch::optim::AdamWOptions(0.05).weight_decay(0.1));
  torch::optim::AdamW biases({net.generator->bias}, torch::optim::AdamWOptions(0.05).weight_decay(0));
  const trainer::Points points(27);
  int64_t step = 0;
  for (const auto& samples : RecordsBatches::batches) {
    std::vector<Tensor> x;
    for (const int64_t sample : samples) x.push_back(points.sample(sample).at("x"));
    Batch batch;
    batch.sample_ids = samples;
    const Tensor real = at::stack(x), fake = net.generator->forward(noise_of(batch));
    const auto loss = [](const Tensor& logits, double target) {
      return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target));
    };
    net.zero_grad();
    (loss(net.discriminator->forward(real), 1) + loss(net.discriminator->forward(fake.detach()), 0))
        .backward();
    discriminator.step();
    net.zero_grad();
    loss(net.discriminator->forward(fake), 1).backward();
    const double lr = 0.05 * std::pow(0.5, step++ / 5);
    weights.param_groups()[0].options().set_lr(lr);
    biases.param_groups()[0].options().set_lr(lr);
    weights.step();
    biases.step();
  }
  for (const auto& item : net.named_parameters())
    EXPECT_TRUE(found.at(item.key()).to(at::kDouble).allclose(item.value(), 1e-6, 1e-9)) << item.key();
}

TEST_F(ManualTest, IsTheSameForAnyNumberOfRanks) {
  recipe_.evaluate.every = "epoch";
  recipe_.training.max_grad_norm = 0.1;
  const NamedTensors alone = train(1, "alone");
  const auto means = [&](const char* name) {
    std::vector<double> values;
    for (const auto& record : records()) {
      if (record.contains(name)) values.push_back(record.at(name));
    }
    return values;
  };
  const auto losses = means("loss_generator"), rates = means("lr_generator");
  ASSERT_EQ(losses.size(), 14U);
  EXPECT_DOUBLE_EQ(rates.front(), 0.05);
  EXPECT_DOUBLE_EQ(rates.back(), 0.0125) << "the schedule counts its optimizer's steps";
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    for (const int ranks : {2, 3}) {  // the last batch of an epoch has 3 samples, or 4 divided among 3 ranks
      const std::string which = fmt::format("{}-{}-{}", strategy, backend, ranks);
      const NamedTensors several = train(ranks, which);
      for (const auto& [name, tensor] : alone)
        EXPECT_TRUE(tensor.allclose(several.at(name), 1e-9, 1e-12)) << name << " " << which;
      const auto found = means("loss_generator");
      ASSERT_EQ(found.size(), losses.size());
      for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(found[i], losses[i], 1e-9) << which << " " << i;
    }
  }
}

struct OverlappingGan : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto loss = [&](const Tensor& x, double target) {
      const Tensor logits = net->discriminator->forward(x);
      return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target), {}, {},
                                                  at::Reduction::Sum);
    };
    const Tensor fake = net->generator->forward(noise_of(batch));
    const Tensor on_real = loss(batch.at("x"), 1);
    context.manual().backward({on_real, batch.count});
    context.manual().step("discriminator", {loss(fake.detach(), 0), 0});
    context.manual().step("generator", {loss(fake, 1), batch.count});
    return {on_real, batch.count};
  }
};

TEST_F(ManualTest, TheLastBackwardMayOverlapWithItsReduction) {
  const NamedTensors alone = train(1, "alone");
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    const NamedTensors two = train<OverlappingGan>(2, fmt::format("{}-{}", strategy, backend));
    for (const auto& [name, tensor] : alone)
      EXPECT_TRUE(tensor.allclose(two.at(name), 1e-9, 1e-12)) << name << " " << strategy << " " << backend;
  }
}

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

TEST_F(ManualTest, EveryMicroBatchStepsTheSameOptimizers) {
  recipe_.training.batch_size = 2;
  EXPECT_THAT([&] { fit<StepsEarlyOnly>(); },
              ThrowsMessage<Error>(HasSubstr("stepped \"first\" in an earlier micro-batch")));
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
  EXPECT_THAT([&] { fit<StepsDiffer<0>>(); },
              ThrowsMessage<Error>(HasSubstr("stepped \"second\" in the first micro-batch of the batch")));
  EXPECT_THAT([&] { fit<StepsDiffer<1>>(); },
              ThrowsMessage<Error>(HasSubstr("in the first one no further optimizer")));
}

// Parameters that alternate, and the same parameters in two groups.
template <bool alternate>
struct TwoGroups : Module {
  struct Net : torch::nn::Module {
    Net() {
      const auto add = [&](const char* name, at::IntArrayRef sizes) {
        return register_parameter(name, at::full(sizes, 0.25, at::kDouble));
      };
      if (alternate) {
        weight = add("weight", {4, 3}), bias = add("bias", {3});
        head = add("head_weight", {3, 1}), head_bias = add("head_bias", {1});
      } else {
        weight = add("weight", {4, 3}), head = add("head_weight", {3, 1});
        bias = add("bias", {3}), head_bias = add("head_bias", {1});
      }
    }
    Tensor weight, bias, head, head_bias;
  };
  TwoGroups() : net(model(std::make_shared<Net>())) {}
  bool automatic_optimization() const override { return false; }
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto loss = [&] {
      const Tensor hidden = at::tanh(at::addmm(net->bias, batch.at("x"), net->weight));
      const Tensor y = at::addmm(net->head_bias, hidden, net->head);
      return Loss(at::mse_loss(y, batch.at("y"), at::Reduction::Sum), batch.count);
    };
    const Loss before = loss();
    context.manual().step("weights", before);
    context.manual().step("biases", loss());
    return {before.sum.detach(), before.count};
  }
  Predictions validation_step(const Batch&, StepContext&) override { return {}; }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"weights", "*weight", optim::adamw({.lr = 0.02, .weight_decay = 0.3})});
    plan.several.push_back({"biases", "*bias", optim::adamw({.lr = 0.05, .weight_decay = 0.7})});
    return plan;
  }
  std::shared_ptr<Net> net;
  int64_t samples = 0;  // of the fixture
};

TEST_F(ManualTest, ParametersOfAnOptimizerNeedNotBeNeighbours) {
  recipe_.checkpoint.monitor = std::nullopt;
  recipe_.parameters.weight_decay = {"*bias"};
  const NamedTensors grouped = train<TwoGroups<false>>(1, "grouped");
  EXPECT_GT((grouped.at("bias") - 0.25).abs().max().item<double>(), 0.05);
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    for (const int ranks : {1, 2}) {
      const std::string which = fmt::format("{}-{}-{}", strategy, backend, ranks);
      const NamedTensors alternating = train<TwoGroups<true>>(ranks, which);
      for (const auto& [name, tensor] : grouped)
        EXPECT_TRUE(tensor.allclose(alternating.at(name), 1e-9, 1e-12)) << name << " " << which;
    }
  }
}

// Averages the weights after each batch.
struct Averages : Callback {
  explicit Averages(std::map<std::string, Tensor>& of_first) : averages(of_first) {}
  std::string name() const override { return "averages"; }
  void fit_start(FitContext& fit) override { update(fit, 0); }
  void step_end(FitContext& fit, const StepReport&) override { update(fit, 0.75); }
  void update(FitContext& fit, double decay) {
    for (const auto& [name, tensor] : fit.weights()) {
      if (fit.mesh.world().rank() != 0) continue;
      Tensor& average = averages[name];
      average = average.defined() ? average * decay + tensor * (1 - decay) : tensor.clone();
    }
  }
  std::map<std::string, Tensor>& averages;
};

TEST_F(ManualTest, AnAverageFollowsTheBatches) {
  recipe_.ema.decay = 0.75;
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    recipe_.output = folder_.path() / fmt::format("{}-{}", strategy, backend);
    std::map<std::string, Tensor> averages;
    fit<GanTask>(2, [&](Trainer& trainer) { trainer.add(std::make_shared<Averages>(averages)); });
    const NamedTensors found = SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
    ASSERT_EQ(averages.size(), 4U);
    for (const auto& [name, tensor] : averages)
      EXPECT_TRUE(tensor.allclose(found.at(name), 1e-9, 1e-12)) << name << " " << strategy << " " << backend;
  }
}

// The generator's loss also gives the discriminator a gradient, which its own step does not use.
struct OtherGradientsAreNotFinite : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor &weight = net->generator->weight, &other = net->discriminator->weight;
    const Tensor sum = weight.square().sum() * batch.count + (other - other.detach()).abs().sqrt().sum();
    context.manual().backward({sum, batch.count});
    context.manual().step("generator");
    return {sum.detach(), batch.count};
  }
};

TEST_F(ManualTest, AStepUsesNoGradientsOfOtherOptimizers) {
  const NamedTensors alone = train<OtherGradientsAreNotFinite>(1, "alone");
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    const NamedTensors two = train<OtherGradientsAreNotFinite>(2, fmt::format("{}-{}", strategy, backend));
    for (const auto& [name, tensor] : alone)
      EXPECT_TRUE(tensor.allclose(two.at(name), 1e-9, 1e-12)) << name << " " << strategy << " " << backend;
  }
}

// The second epoch uses other rows of the table than the first; the earlier rows must then be unchanged.
struct TableTask : Module {
  struct Net : torch::nn::Module {
    Net() {
      table = register_module("table", std::make_shared<nn::Embedding>(30, 4, /*sparse=*/true));
      head = register_module("head", std::make_shared<nn::Linear>(4, 1));
      at::NoGradGuard no_grad;
      for (Tensor& parameter : parameters()) parameter.fill_(0.25);
    }
    std::shared_ptr<nn::Embedding> table;
    std::shared_ptr<nn::Linear> head;
  };
  TableTask() : net(model(std::make_shared<Net>())) {}
  bool automatic_optimization() const override { return false; }
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor ids = at::tensor(batch.sample_ids, at::kLong).remainder(10) + 10 * context.epoch;
    const Tensor of_first_epoch = net->table->weight.detach().slice(0, 0, 10);
    if (context.epoch == 1 && !after_first_epoch.defined()) after_first_epoch = of_first_epoch.clone();
    EXPECT_TRUE(context.epoch == 0 || of_first_epoch.equal(after_first_epoch)) << "step " << context.step;
    const Tensor x = batch.at("x") + net->table->forward(ids);
    const Loss loss(at::mse_loss(net->head->forward(x), batch.at("y"), at::Reduction::Sum), batch.count);
    context.manual().backward(loss);
    context.manual().step(context.step % 2 == 0 ? "table" : "head");
    return loss;
  }
  Predictions validation_step(const Batch&, StepContext&) override { return {}; }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"table", "table.*", optim::sparse_adam({.lr = 0.01}), optim::constant()});
    plan.several.push_back({"head", "head.*", optim::sgd({.lr = 0.01}), optim::constant()});
    return plan;
  }
  std::shared_ptr<Net> net;
  Tensor after_first_epoch;
  int64_t samples = 0;  // of the fixture
};

TEST_F(ManualTest, SparseAdamLeavesRowsThatWereNotUsed) {
  recipe_.training.max_grad_value = 0.5;
  recipe_.checkpoint.monitor = std::nullopt;
  const NamedTensors alone = train<TableTask>(1, "alone");
  const Tensor table = alone.at("table.weight");
  EXPECT_TRUE(table.slice(0, 20).eq(0.25).all().item<bool>());
  EXPECT_TRUE(table.slice(0, 0, 20).ne(0.25).any(1).sum().item<int64_t>() > 10) << "of both epochs";
  for (const auto& [strategy, backend] : strategies_and_backends) {
    recipe_.training.strategy = strategy;
    backend_ = backend;
    const NamedTensors two = train<TableTask>(2, fmt::format("{}-{}", strategy, backend));
    for (const auto& [name, tensor] : alone)
      EXPECT_TRUE(tensor.allclose(two.at(name), 1e-9, 1e-12)) << name << " " << strategy << " " << backend;
  }
}

TEST_F(ManualTest, RanksWithoutSamplesTakePart) {
  recipe_.training.global_batch_size = 2;
  const NamedTensors alone = train(1, "alone");
  const NamedTensors three = train(3, "three");
  for (const auto& [name, tensor] : alone) EXPECT_TRUE(tensor.allclose(three.at(name), 1e-9, 1e-12)) << name;
}

TEST_F(ManualTest, ResumesExactly) {
  recipe_.checkpoint.every = "5";
  recipe_.checkpoint.keep_last = 0;
  for (const int ranks : {1, 2}) {
    recipe_.resume = "auto";
    const NamedTensors whole = train(ranks, "whole" + std::to_string(ranks));
    recipe_.resume = recipe_.output / "checkpoints/step-00000005";
    const NamedTensors resumed = train(ranks, "resumed" + std::to_string(ranks));
    for (const auto& [name, tensor] : whole) EXPECT_TRUE(tensor.equal(resumed.at(name))) << name << ranks;
    EXPECT_EQ(records().back().at("step"), 14);
  }
}

struct Decays : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan = GanTask::configure_optimizers(std::move(plan));
    plan.several.front().schedule = optim::linear_with_warmup({});
    return plan;
  }
};

// 5 steps of 4 samples, one of the 7 samples that are left of the epoch, 3 of 9 samples.
TEST_F(ManualTest, SchedulesEndWithARunThatResumesWithOtherBatches) {
  recipe_.training.steps_this_run = 5;
  fit<Decays>();
  recipe_.training.steps_this_run = std::nullopt;
  recipe_.training.global_batch_size = 9;
  EXPECT_EQ(fit<Decays>().total_steps, 9);
  EXPECT_NEAR(records().at(5).at("lr_generator"), 0.05 * 3 / 9, 1e-12);
}

struct StepsNothing : GanTask {
  Loss training_step(const Batch& batch, StepContext&) override { return {at::zeros({}), batch.count}; }
};
struct StepsWithoutGradients : GanTask {
  Loss training_step(const Batch&, StepContext& context) override {
    context.manual().step("generator");
    return {};
  }
};
struct StepsUnknown : GanTask {
  Loss training_step(const Batch&, StepContext& context) override {
    context.manual().step("genrator");
    return {};
  }
};
struct WithoutPlan : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override { return plan; }
};
struct MissesParameters : GanTask {
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"generator", "generator.*", optim::adamw({})});
    return plan;
  }
};
struct Diverges : GanTask {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.manual().backward({net->generator->weight.sum() * INFINITY, batch.count});
    context.manual().step("generator");
    return {};
  }
};
struct AutomaticAsksForManual : trainer::Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.manual();
    return trainer::Line::training_step(batch, context);
  }
};

TEST_F(ManualTest, MistakesAreNamed) {
  const auto expect = [&](auto task, const char* message) {
    EXPECT_THAT([&] { fit<decltype(task)>(); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  expect(StepsNothing(), "training_step stepped no optimizer");
  expect(StepsWithoutGradients(), "step(\"generator\"): there are no gradients");
  expect(StepsUnknown(), "there is no optimizer \"genrator\"; did you mean \"generator\"?");
  expect(WithoutPlan(),
         "automatic_optimization() is false, so OptimizerPlan::several must name the optimizers");
  expect(MissesParameters(), "no optimizer has the parameter discriminator.weight");
  expect(Diverges(), "step 1 of optimizer \"generator\": the loss is not finite");
  expect(AutomaticAsksForManual(), "there are no optimizers to step here");
}

TEST_F(ManualTest, SettingsThatDoNotApplyAreRefusedAtTheStart) {
  const auto expect = [&](const char* message) {
    EXPECT_THAT([&] { fit<GanTask>(); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  recipe_.training.on_nonfinite = "skip";
  expect("training.on_nonfinite: skip cannot be combined with manual optimization");
}

}  // namespace
}  // namespace stretto
