#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/stretto.h"

// A user-defined task with its own data and model: points in the plane, classified by the side of a line on
// which they are.
namespace stretto {
namespace {

using ::testing::ElementsAre;

class Points : public data::Dataset {
 public:
  explicit Points(int64_t count) : count_(count) {}

  int64_t size() const override { return count_; }
  int32_t length_of(int64_t) const override { return 1; }

  Batch pack(std::span<const int64_t> samples) const override {
    Batch batch;
    batch.sample_ids.assign(samples.begin(), samples.end());
    batch.count = std::ssize(samples);
    const Tensor ids = at::tensor(batch.sample_ids);
    const Tensor x = at::stack({at::sin(ids * 1.7), at::cos(ids * 2.9)}, 1);
    batch.tensors = {{"x", x.to(at::kFloat)},
                     {"labels", (x.select(1, 0) > 0.5 * x.select(1, 1)).to(at::kLong)}};
    return batch;
  }

 private:
  int64_t count_;
};

class WhichSide : public Module {
 public:
  WhichSide() : line_(model(std::make_shared<nn::Linear>(2, 2))) {
    at::NoGradGuard no_grad;
    line_->weight.zero_();
    line_->bias.zero_();
  }

  Loss training_step(const Batch& batch, StepContext&) override {
    return nn::cross_entropy(line_->forward(batch.at("x")), batch.at("labels"));
  }
  Predictions validation_step(const Batch& batch, StepContext&) override {
    const Tensor right = line_->forward(batch.at("x")).argmax(1).eq(batch.at("labels"));
    return right.to(at::kDouble).unsqueeze(1);
  }
  Metrics metrics(const Predictions& predictions) const override {
    return {{"accuracy", predictions.rows.mean().item<double>()}};
  }
  void save(const std::filesystem::path& folder, const ListedSource& weights) const override {
    save_safetensors(folder / "line.safetensors", weights);
  }

 private:
  std::shared_ptr<nn::Linear> line_;
};

TEST(OwnModule, IsTrainedAlikeByOneAndTwoRanks) {
  std::vector<FitResult> results;
  std::vector<NamedTensors> saved;
  for (const int ranks : {1, 2}) {
    const TempFolder folder;
    Recipe recipe;
    recipe.training.epochs = 20;
    recipe.training.global_batch_size = 10;
    recipe.optimizer.as<optim::AdamwOptions>().lr = 0.05;
    recipe.track.progress = "off";
    recipe.checkpoint.monitor = "accuracy";
    recipe.output = folder.path();
    const Points train(100), validation(33);
    std::vector<FitResult> of_rank(static_cast<size_t>(ranks));
    comm::run_rank_threads(ranks, [&](Group& group) {
      WhichSide module;
      const Mesh mesh = make_mesh(recipe, group);
      of_rank[static_cast<size_t>(group.rank())] =
          Trainer(recipe, mesh, at::kCPU).fit(module, train, &validation);
    });
    results.push_back(of_rank.back());
    saved.push_back(SafetensorsFile(folder.path() / "model/line.safetensors").load_all());
  }
  for (const FitResult& result : results) {
    EXPECT_EQ(result.steps, 200);
    ASSERT_TRUE(result.best.has_value());
    EXPECT_GT(result.best->at("accuracy"), 0.95);
  }
  EXPECT_EQ(results[0].best_epoch, results[1].best_epoch);
  EXPECT_THAT(saved[0].at("weight").sizes(), ElementsAre(2, 2));
  for (const char* name : {"weight", "bias"}) {
    EXPECT_TRUE(at::allclose(saved[0].at(name), saved[1].at(name), 1e-4, 1e-5)) << name;
  }
}

// Types that a program registers for recipes; their results equal those of SGD, Constant and zero1.
struct HalvedOptions {
  double lr = 1;
  void fields(settings::Fields& field) { field("lr", lr, "twice the learning rate"); }
  bool operator==(const HalvedOptions&) const = default;
};
std::unique_ptr<optim::Optimizer> halved(const HalvedOptions& options) {
  return optim::sgd({.lr = options.lr / 2, .weight_decay = 0.01});
}

struct SteadyOptions {
  void fields(settings::Fields&) {}
  bool operator==(const SteadyOptions&) const = default;
};
std::unique_ptr<optim::Schedule> steady(const SteadyOptions&) { return optim::constant(); }

class Counter : public Tracker {
 public:
  void begin(const TrackedRun&) override {}
  void write(const Record&) override { ++records; }
  int records = 0;
};

TEST(OwnModule, RecipesNameWhatTheProgramRegisters) {
  const auto counter = std::make_shared<Counter>();
  optim::register_optimizer("Halved", "SGD at half of lr", halved);
  optim::register_schedule(optim::schedule_kind("Steady", "lr throughout", steady));
  register_sharding({.name = "sharded_state", .optimizer = Held::sharded});
  register_tracker({"counter", "counts records", [&](const TrackerSetup&) { return counter; }});
  const Points train(100), validation(33);
  const auto trained = [&](const std::string& settings) {
    const TempFolder folder;
    Recipe recipe = parse_recipe(settings, "own.yaml");
    recipe.training.epochs = 2;
    recipe.training.global_batch_size = 10;
    recipe.track.progress = "off";
    recipe.output = folder.path();
    comm::run_rank_threads(2, [&](Group& group) {
      WhichSide module;
      const Mesh mesh = make_mesh(recipe, group);
      Trainer(recipe, mesh, at::kCPU).fit(module, train, &validation);
    });
    return SafetensorsFile(folder.path() / "model/line.safetensors").load_all();
  };
  const NamedTensors bundled = trained(
      "training: {strategy: zero1}\noptimizer: {type: SGD, lr: 0.5}\nscheduler: {type: Constant}\ntrack: {trackers: []}");
  EXPECT_EQ(counter->records, 0);
  const NamedTensors own = trained(
      "training: {strategy: sharded_state}\noptimizer: {type: Halved, lr: 1}\nscheduler: {type: Steady}\n"
      "track: {trackers: [counter]}");
  EXPECT_GT(counter->records, 0);
  EXPECT_TRUE(own.at("weight").equal(bundled.at("weight")));
  EXPECT_GT(own.at("weight").abs().sum().item<float>(), 0);
}

// Returns a NaN or huge loss at one step: once, or every time the step is taken.
class Stumbling : public WhichSide {
 public:
  Stumbling(int64_t step, double factor, bool always = false)
      : step_(step), factor_(factor), always_(always) {}

  Loss training_step(const Batch& batch, StepContext& context) override {
    Loss loss = WhichSide::training_step(batch, context);
    if (context.step + 1 == step_ && (always_ || !stumbled_)) {
      stumbled_ = true;
      loss.sum = loss.sum * factor_;
    }
    return loss;
  }

 private:
  int64_t step_;
  double factor_;
  bool always_;
  bool stumbled_ = false;
};

class Guard : public ::testing::Test {
 protected:
  Guard() {
    recipe_.training.max_steps = 40;
    recipe_.training.global_batch_size = 10;
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.05;
    recipe_.scheduler.type = "Constant";
    recipe_.track.progress = "off";
    recipe_.track.log_every = 1;
    recipe_.evaluate.every = "never";
    recipe_.output = folder_.path() / "run";
  }
  FitResult fit(int64_t step, double factor, bool always = false) const {
    const Points train(100);
    FitResult result;
    comm::run_rank_threads(2, [&](Group& group) {
      Stumbling module(step, group.rank() == 1 ? factor : 1, always);
      const Mesh mesh = make_mesh(recipe_, group);
      const FitResult rank_result = Trainer(recipe_, mesh, at::kCPU).fit(module, train, nullptr);
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

TEST_F(Guard, StopNamesStepAndRank) {
  EXPECT_THAT(message_of([&] { fit(7, NAN); }),
              ::testing::AllOf(::testing::HasSubstr("step 7: the loss (nan) is not finite"),
                               ::testing::HasSubstr("first on rank 1")));
}

TEST_F(Guard, SkipOmitsTheStep) {
  recipe_.training.on_nonfinite = "skip";
  EXPECT_EQ(fit(7, NAN).steps, 40);
  const auto steps = records();
  ASSERT_EQ(steps.size(), 40u);
  EXPECT_LT(steps.back()["loss"], steps.front()["loss"]);
}

// The loss of a skipped step is excluded from the logged mean and from a checkpoint saved before the mean is
// logged.
TEST_F(Guard, SkippedStepsDoNotAffectMeansAndCheckpoints) {
  recipe_.training.on_nonfinite = "skip";
  recipe_.track.log_every = 10;
  recipe_.checkpoint.every = "8";
  recipe_.checkpoint.keep_last = 0;
  EXPECT_EQ(fit(7, NAN).steps, 40);
  for (const auto& record : records()) EXPECT_TRUE(record["loss"].is_number()) << record;
  const auto whole = read_file(recipe_.output / "model/line.safetensors");

  recipe_.resume = recipe_.output / "checkpoints/step-00000008";
  recipe_.output = folder_.path() / "resumed";
  const FitResult resumed = fit(7, NAN);
  EXPECT_EQ(resumed.resumed_after, 8);
  EXPECT_TRUE(read_file(recipe_.output / "model/line.safetensors") == whole);
}

TEST_F(Guard, SkippingEveryStepEndsTheRun) {
  recipe_.training.on_nonfinite = "skip";
  const Points train(100);
  EXPECT_THAT(message_of([&] {
                comm::run_rank_threads(1, [&](Group& group) {
                  struct Broken : WhichSide {
                    Loss training_step(const Batch& batch, StepContext& context) override {
                      Loss loss = WhichSide::training_step(batch, context);
                      loss.sum = loss.sum * NAN;
                      return loss;
                    }
                  } module;
                  const Mesh mesh = make_mesh(recipe_, group);
                  Trainer(recipe_, mesh, at::kCPU).fit(module, train, nullptr);
                });
              }),
              ::testing::HasSubstr("10 steps in a row were skipped"));
}

TEST_F(Guard, RollbackReturnsWithALowerRate) {
  recipe_.training.on_nonfinite = "rollback";
  recipe_.checkpoint.every = "5";
  EXPECT_EQ(fit(23, NAN).steps, 40);
  const auto steps = records();
  ASSERT_EQ(steps.size(), 40u) << "the steps after the checkpoint are logged once";
  EXPECT_EQ(steps[19]["lr"], 0.05);
  EXPECT_EQ(steps[20]["lr"], 0.025);
  EXPECT_EQ(steps[39]["lr"], 0.025);
}

// A task with given results of metrics() for its evaluations; counts saved models.
class Graded : public Stumbling {
 public:
  Graded(int64_t step, std::vector<double> grades)
      : Stumbling(step, NAN), grades_(grades.rbegin(), grades.rend()) {}

  Metrics metrics(const Predictions&) const override {
    const double grade = grades_.back();
    grades_.pop_back();
    return {{"accuracy", grade}};
  }
  void save(const std::filesystem::path& folder, const ListedSource& weights) const override {
    Stumbling::save(folder, weights);
    ++saves;
  }
  mutable int saves = 0;

 private:
  mutable std::vector<double> grades_;
};

// Step 10 is evaluated, step 12 fails and the run returns to step 8. Later evaluations must be better than
// the first one, whose model is on disk although its steps were rolled back.
TEST_F(Guard, RollbackKeepsTheBestModel) {
  recipe_.training.on_nonfinite = "rollback";
  recipe_.checkpoint.every = "8";
  recipe_.checkpoint.monitor = "accuracy";
  recipe_.evaluate.every = "epoch";
  const Points train(100), validation(10);
  for (const auto& [last, saves] : {std::pair(0.8, 1), {0.95, 2}}) {
    recipe_.output = folder_.path() / std::to_string(saves);
    FitResult result;
    comm::run_rank_threads(1, [&](Group& group) {
      Graded module(12, {0.9, 0.5, 0.6, last, 0.7});
      const Mesh mesh = make_mesh(recipe_, group);
      result = Trainer(recipe_, mesh, at::kCPU).fit(module, train, &validation);
      EXPECT_EQ(module.saves, saves);
    });
    EXPECT_EQ(result.best->at("accuracy"), std::max(0.9, last));
    EXPECT_EQ(result.best_epoch, saves == 1 ? 1 : 3);
  }
}

TEST_F(Guard, RepeatedRollbacksEndTheRun) {
  recipe_.training.on_nonfinite = "rollback";
  recipe_.checkpoint.every = "5";
  EXPECT_THAT(message_of([&] { fit(23, NAN, true); }), ::testing::HasSubstr("still so after 5 rollbacks"));
}

TEST_F(Guard, SpikesAreJudgedByTheRunningMean) {
  recipe_.training.on_spike = "stop";
  EXPECT_THAT(message_of([&] { fit(30, 1000); }),
              ::testing::HasSubstr("is more than 10 times its running mean"));
  recipe_.training.on_spike = "off";
  EXPECT_EQ(fit(30, 1000).steps, 40);
}

}  // namespace
}  // namespace stretto
