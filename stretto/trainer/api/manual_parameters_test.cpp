#include "stretto/trainer/api/manual_fixture.h"

// The parameters, gradients and rows of a table that a step of one optimizer uses.
namespace stretto::trainer {
namespace {

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

}  // namespace
}  // namespace stretto::trainer
