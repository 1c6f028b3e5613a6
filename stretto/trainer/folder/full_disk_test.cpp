#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/trainer/run/loop_fixture.h"

// Tests the files of a run whose disk is full.
namespace stretto::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FullDisk : public LoopTest {
 protected:
  std::string model(const char* name = "model") const {
    return read_file(recipe_.output / name / "model.safetensors");
  }
  // Trains into a new folder on a disk that has no room for paths that contain `path`.
  void fit_without(const std::string& path, int ranks) {
    recipe_.output = folder_.path() / fmt::format("full-{}", ++runs_);
    const file_faults::Injection full({.call = 1, .error = ENOSPC, .sticky = true, .path = path});
    fit(ranks);
  }

 private:
  int runs_ = 0;
};

TEST_F(FullDisk, AFaultOnCheckpointsLeavesTheModel) {
  recipe_.checkpoint.every = 5;
  recipe_.checkpoint.save_models = {"best_train_loss"};
  for (const char* evaluate : {"never", "1ep"}) {
    recipe_.evaluate.every = evaluate;
    for (const int ranks : {1, 2}) {
      recipe_.output = folder_.path() / (evaluate + std::to_string(ranks));
      fit(ranks);
      const std::string expected = model(), best = model("models/best_train_loss");
      // The paths are the folder of checkpoints, the last checkpoint, and the file of one rank.
      for (const std::string path : {"checkpoints", "step-00000021", "rank-00001"}) {
        if (path == "rank-00001" && ranks == 1) continue;
        SCOPED_TRACE(fmt::format("{}, {} ranks, evaluated {}", path, ranks, evaluate));
        EXPECT_THAT(message_of<IoError>([&] { fit_without(path, ranks); }),
                    AllOf(HasSubstr("the last checkpoint was not saved: rank "),
                          HasSubstr("No space left on device"), HasSubstr("; the model is in ")));
        EXPECT_EQ(model(), expected);
        EXPECT_EQ(model("models/best_train_loss"), best);
      }
    }
  }
}

TEST_F(FullDisk, AModelThatCannotBeWrittenFailsAllRanksAndLeavesTheOthers) {
  recipe_.checkpoint.every = 5;
  recipe_.checkpoint.save_models = {"best_loss", "best_train_loss"};
  EXPECT_THAT(message_of<IoError>([&] { fit_without("model.new", 2); }),
              HasSubstr("the model was not saved: "));
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "model"));
  EXPECT_NE(model("models/best_loss"), "");
  EXPECT_NE(model("models/best_train_loss"), "");
  EXPECT_EQ(checkpoints().back(), 21);
}

}  // namespace
}  // namespace stretto::trainer
