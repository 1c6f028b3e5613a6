#include <chrono>
#include <fstream>

#include <fmt/format.h>

#include <ATen/Parallel.h>

#include "stretto/base/log.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/tensor/memory.h"
#include "stretto/trainer/api/trainer.h"

// trainer_bench [STEPS]: microseconds per step of a model with one parameter by Trainer, with and without a
// record of each step for three trackers, and by a bare loop of forward, backward and optimizer step. Prints
// JSON.
namespace stretto {
namespace {

struct Scale : torch::nn::Module {
  Tensor forward(const Tensor& x) { return (x * factor).sum(); }
  Tensor factor = register_parameter("factor", at::ones({1}));
};

struct Task : Module {
  Task() : net(model(std::make_shared<Scale>())) {}
  Loss training_step(const Batch& batch, StepContext&) override {
    return {net->forward(batch.at("x")), batch.count};
  }
  std::shared_ptr<Scale> net;
};

class Ones : public data::SampleDataset {
 public:
  using SampleDataset::SampleDataset;
  data::Sample sample(int64_t) const override { return {{"x", one_}}; }

 private:
  Tensor one_ = at::ones({1});
};

double microseconds(const std::function<void()>& work, int64_t steps) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(steps);
}

double by_trainer(int64_t steps, bool track) {
  const TempFolder folder;
  Recipe recipe;
  recipe.training.max_steps = steps;
  recipe.training.global_batch_size = 1;
  recipe.optimizer = optim::SgdOptions{.lr = 1e-6};
  recipe.scheduler = optim::ConstantOptions{};
  recipe.evaluate.every = "never";
  recipe.checkpoint.every = "never";
  recipe.track.progress = "off";
  recipe.track.log_every = track ? Interval("1") : Interval("never");
  recipe.track.trackers =
      track ? std::vector<std::string>{"jsonl", "csv", "tensorboard"} : std::vector<std::string>{};
  recipe.output = folder.path() / "run";
  double us = 0;
  comm::run_rank_threads(1, [&](Group& group) {
    Task task;
    const Ones samples(steps);
    const Mesh mesh = make_mesh(recipe, group);
    us = Trainer(recipe, mesh, at::kCPU).fit(task, samples, nullptr).seconds / static_cast<double>(steps) *
         1e6;
  });
  return us;
}

double bare(int64_t steps) {
  Scale net;
  const Tensor x = at::ones({1}), gradient = at::zeros({1});
  net.factor.mutable_grad() = gradient;
  const auto sgd = optim::sgd({.lr = 1e-6});
  sgd->bind({net.factor.detach(), gradient, {}}, {{.name = "factor", .layout = {{1}}, .end = 1}},
            plain_memory());
  return microseconds(
      [&] {
        for (int64_t step = 0; step < steps; ++step) {
          net.forward(x).backward();
          sgd->step({.lr = 1e-6}, 1);
        }
      },
      steps);
}

void run(int64_t steps) {
  at::set_num_threads(1);
  bare(steps);  // warms up
  const double loop = bare(steps), trainer = by_trainer(steps, false), tracked = by_trainer(steps, true);
  fmt::print(
      "{{\"bare_us\": {:.2f}, \"trainer_us\": {:.2f}, \"overhead_us\": {:.2f}, \"tracking_us\": {:.2f}}}\n",
      loop, trainer, trainer - loop, tracked - trainer);
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) { stretto::run(argc > 1 ? std::stoll(argv[1]) : 5000); }
