#include <cmath>
#include <map>

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "stretto/trainer/api/manual_fixture.h"
#include "stretto/trainer/api/manual_optimization.h"

namespace stretto::trainer {
namespace {

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
  const Points points(27);
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

TEST_F(ManualTest, RanksWithoutSamplesTakePart) {
  recipe_.training.global_batch_size = 2;
  const NamedTensors alone = train(1, "alone");
  const NamedTensors three = train(3, "three");
  for (const auto& [name, tensor] : alone) EXPECT_TRUE(tensor.allclose(three.at(name), 1e-9, 1e-12)) << name;
}

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

}  // namespace
}  // namespace stretto::trainer
