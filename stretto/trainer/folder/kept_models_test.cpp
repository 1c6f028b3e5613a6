#include "stretto/trainer/folder/kept_models.h"

#include <gmock/gmock.h>

#include "stretto/trainer/run/loop_fixture.h"

namespace stretto::trainer {
namespace {

class KeptModelsTest : public LoopTest {
 protected:
  KeptModelsTest() : group_("shm", memory_store(), 0, 1), mesh_(group_, {}), folder_of_run_(recipe_.output) {}

  KeptModels make() const {
    return KeptModels(recipe_, mesh_, {parse_model_rule("best_accuracy")}, &folder_of_run_, module_);
  }
  // Whether a model is to be saved.
  static bool improve(KeptModels& models, int64_t step, double loss) {
    StepReport report;
    report.step = report.epoch = step;
    return models.improve({{"loss", loss}, {"accuracy", 1 - loss}}, /*train_loss=*/0, report);
  }
  static State state_of(const KeptModels& models) {
    State state;
    models.add_state(state);
    return state;
  }
  void put(const std::string& folder) const { make_folders(folder_of_run_.path() / folder); }

  Group group_;
  Mesh mesh_;
  Line module_;
  RunFolder folder_of_run_;
};

TEST_F(KeptModelsTest, AResumedRunTakesOverTheBestOfTheModelsOnDisk) {
  KeptModels before = make();
  improve(before, 3, 0.5);
  put("model");
  KeptModels resumed = make();
  resumed.resume(state_of(before));
  EXPECT_EQ(resumed.step(), 3);
  EXPECT_EQ(resumed.epoch(), 4);
  EXPECT_EQ(resumed.metrics(), before.metrics());
  EXPECT_EQ(resumed.score()->value, 0.5);
  EXPECT_TRUE(improve(resumed, 4, 0.6)) << "models/best_accuracy is not on disk: it begins again";
  EXPECT_FALSE(resumed.is_due());
  put("models/best_accuracy");
  KeptModels with_both = make();
  with_both.resume(state_of(before));
  EXPECT_FALSE(improve(with_both, 4, 0.6));
}

// The models that were selected since are on disk, and are better than those of the earlier state.
TEST_F(KeptModelsTest, ARollbackKeepsModelsThatWereSelectedSince) {
  KeptModels models = make();
  improve(models, 3, 0.5);
  const State checkpoint = state_of(models);
  improve(models, 4, 0.25);
  models.resume(checkpoint);
  EXPECT_EQ(models.step(), 4);
  EXPECT_EQ(models.metrics()->at("loss"), 0.25);
  EXPECT_EQ(models.score()->value, 0.5) << "the last evaluation is that of the checkpoint";
  EXPECT_FALSE(improve(models, 5, 0.4));
}

TEST_F(KeptModelsTest, AnotherMetricBeginsAgain) {
  KeptModels before = make();
  improve(before, 3, 0.5);
  put("model");
  recipe_.checkpoint.monitor = "accuracy";
  KeptModels resumed = make();
  resumed.resume(state_of(before));
  EXPECT_FALSE(resumed.metrics().has_value());
  EXPECT_FALSE(resumed.score().has_value());
}

}  // namespace
}  // namespace stretto::trainer
