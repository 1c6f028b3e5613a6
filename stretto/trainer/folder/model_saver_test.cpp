#include "stretto/trainer/folder/model_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/file_faults.h"
#include "stretto/base/replaced_folder.h"
#include "stretto/base/temp_folder.h"
#include "stretto/nn/layers.h"
#include "stretto/tensor/safetensors.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

struct Nothing : Module {
  Loss training_step(const Batch&, StepContext&) override { return {}; }
};

class ModelSaverTest : public ::testing::Test {
 protected:
  double saved() const {
    return SafetensorsFile(folder_.model() / "model.safetensors").load("w").item<double>();
  }

  const TempFolder temp_;
  const RunFolder folder_ = RunFolder(temp_.path() / "run");
  Nothing module_;
  Tensor weight_ = at::full({1}, 1.0, at::kDouble);
  const MemorySource weights_ = MemorySource({{"w", weight_}});
  ModelSaver saver_ = ModelSaver(folder_, module_);
};

TEST_F(ModelSaverTest, AfterAFullDiskTheSameWeightsAreWrittenLater) {
  saver_.save(weights_);
  weight_.fill_(2);
  {
    const file_faults::Injection full({.call = 1, .error = ENOSPC, .sticky = true, .path = "model"});
    saver_.save(weights_);
    weight_.fill_(3);  // training continues
    EXPECT_THAT(saver_.finish(), HasSubstr("the model was not saved: "));
  }
  EXPECT_EQ(saved(), 1);
  saver_.retry();
  EXPECT_EQ(saved(), 2);
  EXPECT_EQ(saver_.finish(), "");
}

TEST_F(ModelSaverTest, AFailedSaveLeavesNoOtherFolder) {
  saver_.save(weights_);
  bool hit = true;
  for (int64_t call = 1; hit; ++call) {
    const file_faults::Injection injection({.call = call, .error = EIO});
    saver_.save(weights_);
    hit = !injection.hit().empty();
    EXPECT_EQ(saved(), 1) << injection.hit();
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    EXPECT_THAT(names, ::testing::ElementsAre("model")) << injection.hit();
  }
}

// Without RENAME_EXCHANGE a process may die between the two renames of a replacement.
TEST_F(ModelSaverTest, AModelWhoseReplacementWasInterruptedIsRestored) {
  saver_.save(weights_);
  std::filesystem::rename(folder_.model(), replaced_path(folder_.model()));
  const ModelSaver next(folder_, module_);
  EXPECT_EQ(saved(), 1);
}

TEST_F(ModelSaverTest, AMissingFolderIsNamed) {
  EXPECT_EQ(saver_.finish(), "");  // nothing was saved
  saver_.save(weights_);
  std::filesystem::rename(folder_.path(), temp_.path() / "elsewhere");
  EXPECT_THAT(saver_.finish(), HasSubstr("was removed or renamed during the run"));
  saver_.save(weights_);
  EXPECT_EQ(saved(), 1);
  EXPECT_EQ(saver_.finish(), "");
}

}  // namespace
}  // namespace stretto::trainer
