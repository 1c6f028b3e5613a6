#include "stretto/trainer/folder/model_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/file_faults.h"
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
