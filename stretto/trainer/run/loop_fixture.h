#pragma once

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/records/records_fixture.h"
#include "stretto/trainer/records/summary.h"

// The fixture of tests of the loop: runs of a small regression.
namespace stretto::trainer {

class Points : public data::SampleDataset {
 public:
  explicit Points(int64_t count) : SampleDataset(count) {}
  data::Sample sample(int64_t index) const override {
    const Tensor x = at::sin(at::arange(1, 5, at::kDouble) * static_cast<double>(index + 1));
    return {{"x", x}, {"y", x.sum().unsqueeze(0)}};
  }
};

struct Line : Module {
  Line() : layer(model(nn::sharded(std::make_shared<nn::Linear>(4, 1)))) {
    at::NoGradGuard no_grad;
    for (Tensor& parameter : root().parameters()) parameter.fill_(0.25);
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    return loss_of_mean(at::mse_loss(layer->forward(batch.at("x")), batch.at("y")), batch.count);
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    samples += batch.count;
    Module::validation_step(batch, context);
    // The metric improves first and then gets worse: it is the distance of the weights to a point on their
    // path.
    context.log("closeness", -std::abs(layer->forward(at::ones({1, 4}, at::kDouble)).item<double>() - 2));
    return {};
  }
  std::shared_ptr<nn::Sharded<nn::Linear>> layer;
  int64_t samples = 0;
};

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    recipe_.training.epochs = 3;
    recipe_.training.global_batch_size = 4;
    recipe_.training.precision = "fp64";
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.1;
    recipe_.scheduler = optim::ConstantOptions{};
    recipe_.checkpoint.monitor = "loss";
    recipe_.track.progress = "off";
    recipe_.track.log_every = 100;
    recipe_.output = folder_.path() / "run";
  }

  // 7 steps per epoch.
  template <class Task = Line>
  FitResult fit(int ranks = 1, const std::function<void(Trainer&)>& prepare = {}) {
    const Points train(27), validation(10);
    FitResult result;
    samples_ = 0;
    std::mutex mutex;
    const auto run_rank = [&](Group& group) {
      Task module;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer trainer(recipe_, mesh, at::kCPU);
      if (prepare) prepare(trainer);
      const FitResult rank_result = trainer.fit(module, train, &validation);
      if (group.rank() == 0 && !rank_result.stopped && !rank_result.was_finished)
        write_summary(recipe_, mesh, rank_result);
      const std::lock_guard lock(mutex);
      samples_ += module.samples;
      if (group.rank() == 0) result = rank_result;
    };
    GroupOptions options;
    options.deadline = std::chrono::seconds(20);
    comm::run_rank_threads(ranks, options, run_rank, backend_);
    return result;
  }
  std::vector<nlohmann::json> records() const { return records_of(recipe_.output); }
  // The steps of records with `key`.
  std::vector<int64_t> steps_with(const char* key) const {
    std::vector<int64_t> steps;
    for (const auto& record : records()) {
      if (record.contains(key)) steps.push_back(record.at("step"));
    }
    return steps;
  }
  std::vector<int64_t> checkpoints() const {
    std::vector<int64_t> steps;
    for (const auto& entry : std::filesystem::directory_iterator(recipe_.output / "checkpoints"))
      steps.push_back(*parse_int(entry.path().filename().string().substr(5)));
    std::ranges::sort(steps);
    return steps;
  }
  nlohmann::json saved_state(const std::string& model) const {
    return nlohmann::json::parse(read_file(recipe_.output / "models" / model / "state.json"));
  }

  TempFolder folder_;
  Recipe recipe_;
  std::string backend_ = "shm";  // "tcp": ranks without shared memory, as on several hosts
  int64_t samples_ = 0;          // evaluated, over all ranks
};

}  // namespace stretto::trainer
