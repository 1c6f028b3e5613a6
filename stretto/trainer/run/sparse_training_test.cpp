#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/parallel/replicas.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto::trainer {
namespace {

// Sample i is a word and a number to predict from it.
class Words : public data::SampleDataset {
 public:
  using SampleDataset::SampleDataset;
  data::Sample sample(int64_t index) const override {
    return {{"word", at::scalar_tensor(index * index % 40, at::kLong)},
            {"y", at::scalar_tensor(std::sin(index), at::kDouble)}};
  }
};

// Returns zero, with a gradient of NaN for each element of `x`.
Tensor zero_with_nan_gradient(const Tensor& x) { return (x - x.detach()).abs().sqrt().sum(); }

// Three of every 40 steps are not finite when they are first computed: one because of the loss, one because
// of the gradients of all parameters, and one because of the gradient of the bias alone, in which case those
// of the table are finite.
template <bool sparse>
struct WordRegression : Module {
  struct Net : torch::nn::Module {
    Net() {
      register_module("table", table);
      register_module("head", head);
      at::NoGradGuard no_grad;
      for (Tensor& parameter : parameters()) parameter.fill_(0.25);
    }
    std::shared_ptr<nn::Embedding> table = std::make_shared<nn::Embedding>(50, 3, sparse);
    std::shared_ptr<nn::Linear> head = std::make_shared<nn::Linear>(3, 1);
  };
  WordRegression() : net(model(std::make_shared<Net>())) {}
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Tensor found = net->head->forward(net->table->forward(batch.at("word"))).squeeze(1);
    Tensor mean = at::mse_loss(found, batch.at("y").to(found.scalar_type()));
    if (context.forward.training) {
      const int64_t step = context.step % 40;
      // A gradient is computed a second time to find the rank that caused it.
      const bool is_first = ++computed[context.step] <= (step == 20 ? 1 : 2);
      if (is_first && step == 20) mean = mean * INFINITY;
      if (is_first && step == 30) mean = mean + zero_with_nan_gradient(found);
      if (is_first && step == 35) mean = mean + zero_with_nan_gradient(net->head->bias);
    }
    return loss_of_mean(mean, batch.count);
  }
  std::shared_ptr<Net> net;
  std::map<int64_t, int> computed;  // how often each step was computed
};

// Records the table at callbacks, and the weights at the end. A lazy callback calls catch_up() itself.
struct Watch : Callback {
  Watch(std::shared_ptr<nn::Embedding> watched, std::vector<uint64_t>& all, bool is_lazy)
      : table(std::move(watched)), seen(all), lazy(is_lazy) {}
  std::string name() const override { return "watch"; }
  bool reads_parameters() const override { return !lazy; }
  void step_start(FitContext& fit) override {
    if (fit.steps_done % 13 != 0) return;
    if (lazy) fit.catch_up();
    see();
  }
  void step_end(FitContext& fit, const StepReport& report) override {
    if (report.step % 31 != 0) return;
    if (lazy) fit.catch_up();
    see();
  }
  void evaluation_end(FitContext&, const Metrics&) override { see(); }
  void epoch_end(FitContext&) override { see(); }
  void checkpoint_saved(FitContext&) override { see(); }
  void fit_end(FitContext&) override { see(); }
  void see() { seen.push_back(parallel::checksum(table->weight)); }
  std::shared_ptr<nn::Embedding> table;
  std::vector<uint64_t>& seen;
  bool lazy;
};

class SparseTraining : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  SparseTraining() {
    recipe_.training.precision = std::get<0>(GetParam());
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.05;
    recipe_.track.progress = "off";
    recipe_.evaluate.every = "never";
    recipe_.output = folder_.path() / "run";
    recipe_.training.max_steps = 150;
    recipe_.training.global_batch_size = 6;
    recipe_.training.max_grad_norm = 0;  // the norm is summed in another order
    recipe_.training.on_nonfinite = "skip";
    recipe_.optimizer.as<optim::AdamwOptions>().weight_decay = 0.1;
    recipe_.scheduler.type = "Constant";
    recipe_.checkpoint.accept_changes = {"training.max_steps"};
  }

  // The observable results of a run: in callbacks, in the module afterwards, and in the exported model.
  template <bool sparse>
  std::pair<std::vector<uint64_t>, std::string> run(bool lazy_callback = true) {
    const Words train(120), validation(30);
    std::vector<uint64_t> seen;
    comm::run_rank_threads(std::get<1>(GetParam()), [&](Group& group) {
      WordRegression<sparse> module;
      std::vector<uint64_t> checksums;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer trainer(recipe_, mesh, at::kCPU);
      trainer.add(std::make_shared<Watch>(module.net->table, checksums, lazy_callback));
      trainer.fit(module, train, &validation);
      checksums.push_back(parallel::checksum(module.net->table->weight));
      if (group.rank() == 0) seen = std::move(checksums);
    });
    return {seen, read_file(recipe_.output / "model/model.safetensors")};
  }
  void start_again() { std::filesystem::remove_all(recipe_.output); }

  TempFolder folder_;
  Recipe recipe_;
};

// Rows that are stepped lazily equal rows that are stepped in every step whenever they are read.
TEST_P(SparseTraining, EqualsDenseTraining) {
  const auto dense = run<false>();
  start_again();
  EXPECT_EQ(run<true>(), dense);
  start_again();
  EXPECT_EQ(run<true>(/*lazy_callback=*/false), dense) << "a callback without catch_up()";
  start_again();
  recipe_.evaluate.every = "epoch";
  recipe_.checkpoint.every = "7";
  const auto saved = run<false>();
  start_again();
  EXPECT_EQ(run<true>(), saved) << "evaluated and saved";
}

TEST_P(SparseTraining, ResumesLikeDenseTraining) {
  const auto whole = run<false>();
  start_again();
  recipe_.checkpoint.every = "50";
  recipe_.training.max_steps = 70;
  run<true>();
  recipe_.training.max_steps = 150;
  const auto resumed = run<true>();
  EXPECT_EQ(resumed.second, whole.second);
  EXPECT_EQ(resumed.first.back(), whole.first.back());
}

TEST_P(SparseTraining, StepsThatAreUndoneLeaveNoGradients) {
  recipe_.training.on_nonfinite = "rollback";
  recipe_.training.max_steps = 50;
  recipe_.checkpoint.every = "7";
  const auto dense = run<false>();
  start_again();
  EXPECT_EQ(run<true>(), dense);
}

TEST_P(SparseTraining, AnOptimizerThatDoesNotStepRowsTreatsTheTableAsDense) {
  recipe_.optimizer = optim::SgdOptions{.lr = 0.05, .weight_decay = 0.1, .momentum = 0.9};
  const auto dense = run<false>();
  start_again();
  EXPECT_EQ(run<true>(), dense);
}

INSTANTIATE_TEST_SUITE_P(Runs, SparseTraining,
                         ::testing::Combine(::testing::Values("fp64", "fp32", "bf16"),
                                            ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

}  // namespace
}  // namespace stretto::trainer
