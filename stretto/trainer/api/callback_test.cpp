#include "stretto/trainer/api/callback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/trainer/api/callbacks/weight_histograms.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/records/records_fixture.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Ones : public data::SampleDataset {
 public:
  using SampleDataset::SampleDataset;
  data::Sample sample(int64_t) const override { return {{"x", at::ones({2}, at::kDouble)}}; }
};

struct Sum : Module {
  Sum() : layer(model(std::make_shared<nn::Linear>(2, 1))) {
    at::NoGradGuard no_grad;
    for (Tensor& parameter : root().parameters()) parameter.fill_(0.5);
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    return {layer->forward(batch.at("x")).square().sum(), static_cast<double>(batch.count)};
  }
  std::shared_ptr<nn::Linear> layer;
};

// Records all events.
class Diary : public Callback {
 public:
  explicit Diary(std::vector<std::string>& entries) : entries_(entries) {}
  std::string name() const override { return "diary"; }
  void fit_start(FitContext& fit) override { note("fit_start", fit); }
  void epoch_start(FitContext& fit) override { note("epoch_start", fit); }
  void step_start(FitContext& fit) override { note("step_start", fit); }
  void step_end(FitContext& fit, const StepReport& report) override {
    EXPECT_EQ(report.step, fit.steps_done);
    note("step_end", fit);
  }
  void evaluation_end(FitContext& fit, const Metrics& metrics) override {
    EXPECT_EQ(metrics, fit.evaluation);
    EXPECT_TRUE(metrics.contains("loss"));
    note("evaluation_end", fit);
  }
  void epoch_end(FitContext& fit) override { note("epoch_end", fit); }
  void checkpoint_saved(FitContext& fit) override { note("checkpoint_saved", fit); }
  void fit_end(FitContext& fit) override { note("fit_end", fit); }
  void exception(FitContext& fit, const std::exception&) override { note("exception", fit); }
  void add_state(State& state) const override {
    state.scalars["entries"] = entries_;
    state.tensors.push_back(whole_entry("count", {1}, count_));
  }
  void resume(const State& state) override { state.scalars.at("entries").get_to(entries_); }
  int64_t count() const { return count_.item<int64_t>(); }

 private:
  void note(const char* event, const FitContext& fit) {
    entries_.push_back(fmt::format("{} {}.{}", event, fit.epoch, fit.steps_done));
    count_ += 1;
  }
  std::vector<std::string>& entries_;
  Tensor count_ = at::zeros({1}, at::kLong);
};

class CallbackTest : public ::testing::Test {
 protected:
  CallbackTest() {
    recipe_.training.epochs = 2;
    recipe_.training.global_batch_size = 4;
    recipe_.training.precision = "fp64";
    recipe_.track.progress = "off";
    recipe_.track.log_every = 3;
    recipe_.checkpoint.every = "1ep";
    recipe_.output = folder_.path() / "run";
  }
  FitResult fit(int ranks, const std::function<void(Trainer&, int rank)>& add) const {
    const Ones train(8), validation(3);
    FitResult result;
    comm::run_rank_threads(ranks, [&](Group& group) {
      Sum module;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer trainer(recipe_, mesh, at::kCPU);
      add(trainer, group.rank());
      const FitResult rank_result = trainer.fit(module, train, &validation);
      if (group.rank() == 0) result = rank_result;
    });
    return result;
  }
  std::vector<std::string> logged_steps() const {
    std::vector<std::string> steps;
    for (const auto& record : trainer::records_of(recipe_.output)) {
      if (record.contains("lr")) steps.push_back(record.at("step").dump());
    }
    return steps;
  }

  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(CallbackTest, EventsComeInOrderOnEveryRank) {
  std::vector<std::vector<std::string>> diaries(2);
  fit(2, [&](Trainer& trainer, int rank) {
    trainer.add(std::make_shared<Diary>(diaries[static_cast<size_t>(rank)]));
  });
  EXPECT_THAT(diaries[0],
              ElementsAre("fit_start 0.0",                                                          //
                          "epoch_start 0.0", "step_start 0.0", "step_end 0.1",                      //
                          "step_start 0.1", "step_end 0.2", "evaluation_end 0.2", "epoch_end 0.2",  //
                          "checkpoint_saved 0.2",                                                   //
                          "epoch_start 1.2", "step_start 1.2", "step_end 1.3",                      //
                          "step_start 1.3", "step_end 1.4", "evaluation_end 1.4", "epoch_end 1.4",  //
                          "checkpoint_saved 1.4", "fit_end 1.4"));
  EXPECT_EQ(diaries[1], diaries[0]);
}

TEST_F(CallbackTest, StateIsRestored) {
  recipe_.checkpoint.every = "3";
  recipe_.checkpoint.keep_last = 0;
  std::vector<std::string> whole;
  fit(1, [&](Trainer& trainer, int) { trainer.add(std::make_shared<Diary>(whole)); });
  recipe_.resume = recipe_.output / "checkpoints/step-00000003";
  recipe_.output = folder_.path() / "resumed";
  std::vector<std::vector<std::string>> resumed(2);
  std::shared_ptr<Diary> diary;
  fit(2, [&](Trainer& trainer, int rank) {
    auto own = std::make_shared<Diary>(resumed[static_cast<size_t>(rank)]);
    trainer.add(own);
    if (rank == 1) diary = std::move(own);
  });
  std::vector<std::string> expected(whole.begin(), std::ranges::find(whole, "checkpoint_saved 1.3"));
  expected.push_back("fit_start 1.3");  // inside the epoch: no epoch_start
  expected.insert(expected.end(), std::ranges::find(whole, "step_start 1.3"), whole.end());
  EXPECT_EQ(resumed[0], expected);
  EXPECT_EQ(resumed[1], expected);
  EXPECT_EQ(diary->count(), std::ssize(expected));
}

// Requests a stop at one event of one step, on one rank.
class Stopper : public Callback {
 public:
  Stopper(std::string event, int64_t step) : event_(std::move(event)), step_(step) {}
  std::string name() const override { return "stopper"; }
  void fit_start(FitContext& fit) override { at("fit_start", fit); }
  void step_start(FitContext& fit) override { at("step_start", fit); }
  void step_end(FitContext& fit, const StepReport&) override { at("step_end", fit); }
  void evaluation_end(FitContext& fit, const Metrics&) override { at("evaluation_end", fit); }

 private:
  void at(const std::string& event, FitContext& fit) const {
    if (event == event_ && fit.steps_done == step_) fit.stop("it is " + event);
  }
  std::string event_;
  int64_t step_;
};

TEST_F(CallbackTest, AnyRankMayEndTheRun) {
  const auto ended_after = [&](const char* event, int64_t step) {
    recipe_.output = folder_.path() / fmt::format("{}-{}", event, step);
    const FitResult result = fit(2, [&](Trainer& trainer, int rank) {
      trainer.add(std::make_shared<Stopper>(rank == 1 ? event : "never", step));
    });
    EXPECT_EQ(result.ended_by, std::string("it is ") + event);
    EXPECT_FALSE(result.stopped);
    return result.steps;
  };
  EXPECT_EQ(ended_after("fit_start", 0), 0);
  EXPECT_EQ(ended_after("step_start", 0), 1);
  EXPECT_THAT(logged_steps(), ElementsAre("1")) << "the pending record is written at the end";
  EXPECT_TRUE(std::filesystem::exists(recipe_.output / "model/model.safetensors"));
  EXPECT_EQ(ended_after("step_end", 1), 2);
  EXPECT_EQ(ended_after("evaluation_end", 2), 2);
  EXPECT_THAT(logged_steps(), ElementsAre("2"));
}

class Thrower : public Callback {
 public:
  std::string name() const override { return "thrower"; }
  void step_end(FitContext& fit, const StepReport&) override {
    if (fit.steps_done == 2) throw std::runtime_error("the disk is on fire");
  }
  void exception(FitContext&, const std::exception& error) override { seen += error.what(); }
  std::string seen;
};

TEST_F(CallbackTest, ExceptionsNameTheCallback) {
  const auto thrower = std::make_shared<Thrower>();
  EXPECT_THAT(message_of([&] { fit(1, [&](Trainer& trainer, int) { trainer.add(thrower); }); }),
              has_all("callback thrower", "at step_end, after step 2: ", "the disk is on fire"));
  EXPECT_THAT(thrower->seen, HasSubstr("the disk is on fire"));
}

TEST_F(CallbackTest, TwoCallbacksOfOneNameAreRefused) {
  EXPECT_THAT(message_of<ConfigError>([&] {
                fit(1, [&](Trainer& trainer, int) {
                  for (int i = 0; i < 2; ++i) trainer.add(std::make_shared<Thrower>());
                });
              }),
              HasSubstr("two callbacks are named \"thrower\""));
}

struct Listener : Tracker {
  void begin(const TrackedRun& run) override {
    EXPECT_EQ(run.total_steps, 4);
    EXPECT_THAT(run.settings, HasSubstr("global_batch_size: 4"));
  }
  void write(const Record& record) override {
    records.push_back(fmt::format("{}{}", record.evaluation ? "evaluation " : "", record.step));
  }
  void step(const Record& record) override { steps += record.step; }
  std::vector<std::string> records;
  int64_t steps = 0;
};

TEST_F(CallbackTest, AUserDefinedTrackerReceivesAllValues) {
  const auto listener = std::make_shared<Listener>();
  fit(2, [&](Trainer& trainer, int rank) {
    if (rank == 0) trainer.add(listener);
  });
  EXPECT_THAT(listener->records, ElementsAre("evaluation 2", "3", "4", "evaluation 4"));
  EXPECT_EQ(listener->steps, 1 + 2 + 3 + 4);
}

TEST(WeightHistograms, CountEveryFiniteValue) {
  const Histogram histogram =
      trainer::histogram_of(at::tensor({0.0, 1.0, 1.0, 64.0, NAN, INFINITY}, at::kDouble));
  EXPECT_EQ(histogram.count, 4);
  EXPECT_EQ(histogram.sum, 66);
  EXPECT_EQ(histogram.sum_of_squares, 4098);
  ASSERT_EQ(histogram.counts.size(), 64u);
  EXPECT_EQ(histogram.counts[0], 1);
  EXPECT_EQ(histogram.counts[1], 2);
  EXPECT_EQ(histogram.counts[63], 1);
  EXPECT_EQ(histogram.limits[0], 1);
  EXPECT_EQ(histogram.limits[63], 64);
  EXPECT_EQ(trainer::histogram_of(at::zeros({3})).counts, std::vector<double>{3});
  EXPECT_EQ(trainer::histogram_of(at::full({3}, NAN)).count, 0);
  EXPECT_EQ(trainer::histogram_of(at::empty({0})).count, 0);
}

}  // namespace
}  // namespace stretto
