#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/trainer/run/loop_fixture.h"

// Tests runs that resume from a checkpoint that `resume` names.
namespace stretto::trainer {
namespace {

class OtherRun : public LoopTest {
 protected:
  OtherRun() {
    recipe_.evaluate.every = 1;
    recipe_.checkpoint.monitor = "closeness";  // the best evaluation is one of the first
    recipe_.checkpoint.mode = "max";
    recipe_.checkpoint.save_models = {"best_closeness:max"};
    recipe_.checkpoint.keep_last = 0;
    recipe_.checkpoint.every = 1;
    recipe_.output = folder_.path() / "other";
    best_step_ = fit().best_step;
    EXPECT_LT(best_step_, 18);
  }
  std::filesystem::path other() const {
    return checkpoint_format::checkpoint_path(folder_.path() / "other/checkpoints", 18);
  }
  std::string model(const std::string& folder) const {
    return read_file(recipe_.output / folder / "model.safetensors");
  }
  int64_t best_step_ = 0;
};

TEST_F(OtherRun, TheBestModelOfTheOtherRunIsNotUsed) {
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    recipe_.resume = "auto";
    recipe_.training.steps_this_run = 6;  // an earlier run with a model and a checkpoint of step 6
    fit(ranks);
    const std::string earlier = model("model");
    recipe_.training.steps_this_run = std::nullopt;
    recipe_.resume = other();
    const FitResult result = fit(ranks);
    EXPECT_EQ(result.resumed_after, 18);
    EXPECT_GT(result.best_step, 18) << "the best of those that this run has evaluated";
    EXPECT_EQ(saved_state("best_closeness").at("step"), result.best_step);
    EXPECT_EQ(model("model"), model("models/best_closeness"));
    EXPECT_EQ(checkpoints().front(), 19);
    EXPECT_EQ(model("previous-1/model"), earlier);
    EXPECT_TRUE(std::filesystem::exists(
        checkpoint_format::checkpoint_path(recipe_.output / "previous-1/checkpoints", 6)));
  }
}

TEST_F(OtherRun, ACheckpointOfTheFolderContinuesItsRun) {
  for (int64_t step = 19; step <= 21; ++step)
    std::filesystem::remove_all(checkpoint_format::checkpoint_path(recipe_.output / "checkpoints", step));
  const std::string best = model("model");
  recipe_.resume = other().string() + "/";
  EXPECT_EQ(fit().best_step, best_step_);
  EXPECT_EQ(model("model"), best);
  EXPECT_FALSE(std::filesystem::exists(recipe_.output / "previous-1"));
}

TEST_F(OtherRun, OnlyKeysOfTheModelThatDifferAreNamed) {
  recipe_.output = folder_.path() / "model";
  recipe_.model.config.emplace().section = {{"hidden_size", 8}, {"vocab_size", 3}};
  fit();
  recipe_.model.config->section["hidden_size"] = 16;
  try {
    fit();
    ADD_FAILURE() << "another model";
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, has_all("\n  model.config.hidden_size: 8 in the checkpoint, now 16\n",
                                 "accept the change, if tensors keep their shapes, with", "[model.config]"));
    EXPECT_EQ(message.find("vocab_size"), std::string::npos);
  }
}

}  // namespace
}  // namespace stretto::trainer
