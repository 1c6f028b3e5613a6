#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/trainer/run/loop_fixture.h"

// A run can be resumed only on the data that it has used: its training samples and the samples that selected
// its best model.
namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

// The points, with the sign of one sample's target flipped.
class OneFlipped : public Points {
 public:
  OneFlipped(int64_t count, int64_t flipped) : Points(count), flipped_(flipped) {}
  data::Sample sample(int64_t index) const override {
    data::Sample sample = Points::sample(index);
    if (index == flipped_) sample["y"] = -sample["y"];
    return sample;
  }

 private:
  int64_t flipped_;
};

constexpr int64_t none = -1;

class SameData : public LoopTest {
 protected:
  SameData() {
    recipe_.checkpoint.every = "epoch";
    recipe_.training.steps_this_run = 7;
  }

  // Runs a part of the run; returns the reason why it does not start, on every rank.
  std::string fit_with(int64_t flipped_in_train, int64_t flipped_in_validation,
                       int64_t flipped_in_more = none) {
    const OneFlipped train(27, flipped_in_train), validation(10, flipped_in_validation);
    const OneFlipped more(6, flipped_in_more);
    std::mutex mutex;
    std::string refusal;
    comm::run_rank_threads(2, [&](Group& group) {
      Line module;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer trainer(recipe_, mesh, at::kCPU);
      trainer.add_validation("more", more);
      try {
        trainer.fit(module, train, &validation);
      } catch (const ConfigError& error) {
        const std::lock_guard lock(mutex);
        refusal = error.what();
      }
    });
    return refusal;
  }
};

TEST_F(SameData, OtherTrainingLabelsAreRefused) {
  EXPECT_EQ(fit_with(none, none), "");
  EXPECT_THAT(fit_with(3, none), HasSubstr("the training data is not the data of the run"));
  EXPECT_EQ(fit_with(none, none), "");
}

TEST_F(SameData, OtherValidationLabelsAreRefused) {
  EXPECT_EQ(fit_with(none, none), "");
  EXPECT_THAT(fit_with(none, 3),
              has_all("the validation data is not the data of the run", "number of samples (10)",
                      "--set 'checkpoint.accept_changes=[data.validation]'"));
  EXPECT_THAT(fit_with(none, none, 3), has_all("the validation data \"more\"", "not the data of the run"));
  recipe_.evaluate.max_samples = 4;
  EXPECT_THAT(fit_with(none, none), has_all("the validation data holds 4 samples here", "10 in the run"));
  recipe_.evaluate.max_samples.reset();
  EXPECT_EQ(fit_with(none, none), "");
}

TEST_F(SameData, OtherValidationLabelsMayBeAccepted) {
  EXPECT_EQ(fit_with(none, none), "");
  recipe_.checkpoint.accept_changes = {"data.validation"};
  EXPECT_EQ(fit_with(none, 3), "");
  recipe_.checkpoint.accept_changes.clear();
  EXPECT_THAT(fit_with(none, none), HasSubstr("the validation data"))
      << "the newest checkpoint has the others";
}

// A part of the run without evaluations keeps the identification of the samples that selected the best model.
TEST_F(SameData, IsRememberedWhileNothingIsEvaluated) {
  EXPECT_EQ(fit_with(none, none), "");
  recipe_.evaluate.every = "never";
  EXPECT_EQ(fit_with(none, 3), "");
  recipe_.evaluate.every = "epoch";
  EXPECT_THAT(fit_with(none, 3), HasSubstr("the validation data is not"));
}

}  // namespace
}  // namespace stretto::trainer
