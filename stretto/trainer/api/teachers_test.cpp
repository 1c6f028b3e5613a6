#include "stretto/trainer/api/teachers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/load.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class SineInputs : public data::SampleDataset {
 public:
  explicit SineInputs(int64_t count) : SampleDataset(count) {}
  data::Sample sample(int64_t index) const override {
    return {{"x", at::sin(at::arange(1, 4, at::kFloat) * static_cast<double>(index + 1))}};
  }
};

// A student, a map of 3 to 2 values, that imitates a teacher.
struct Imitation : Module {
  explicit Imitation(double teacher_weight)
      : student(model(std::make_shared<nn::Linear>(3, 2))),
        large(teacher(std::make_shared<nn::Linear>(3, 2))) {
    at::NoGradGuard no_grad;
    for (Tensor& parameter : student->parameters()) parameter.fill_(0.1);
    for (Tensor& parameter : large->parameters()) parameter.fill_(teacher_weight);
    large->train();
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor x = batch.at("x").to(large->parameters()[0].scalar_type());
    const Tensor target = large->forward(x);
    EXPECT_FALSE(target.requires_grad());
    EXPECT_FALSE(large->is_training());
    return loss_of_mean(at::mse_loss(student->forward(x).to(at::kDouble), target.to(at::kDouble)),
                        batch.count);
  }
  std::shared_ptr<nn::Linear> student, large;
};

class TeacherTest : public ::testing::Test {
 protected:
  TeacherTest() {
    recipe_.training.max_steps = 8;
    recipe_.training.global_batch_size = 4;
    recipe_.training.precision = "fp64";
    recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.01;
    recipe_.evaluate.every = "never";
    recipe_.checkpoint.every = "8";
    recipe_.track.progress = "off";
    recipe_.output = folder_.path() / "run";
  }
  // The teacher begins with different weights on each rank; rank 0's replace them.
  Tensor train(int ranks) {
    const SineInputs inputs(24);
    comm::run_rank_threads(ranks, [&](Group& group) {
      Imitation module(0.5 + group.rank());
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer(recipe_, mesh, at::kCPU).fit(module, inputs, nullptr);
      for (const Tensor& parameter : module.large->parameters()) {
        EXPECT_TRUE(parameter.eq(0.5).all().item<bool>());
        EXPECT_FALSE(parameter.requires_grad());
        EXPECT_FALSE(parameter.grad().defined());
        EXPECT_EQ(parameter.scalar_type(),
                  recipe_.training.precision == "bf16" ? at::kBFloat16 : at::kDouble);
      }
    });
    const SafetensorsFile file(recipe_.output / "model/model.safetensors");
    return file.load("weight");
  }

  TempFolder folder_;
  Recipe recipe_;
};

TEST_F(TeacherTest, IsUsedAndNotTrainedUnderEveryStrategy) {
  const Tensor expected = train(1);
  EXPECT_GT((expected - 0.1).abs().min().item<double>(), 0.01) << "the student has moved towards it";
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp", "hsdp"}) {
    for (const int ranks : {1, 2}) {
      recipe_.training.strategy = strategy;
      recipe_.output = folder_.path() / fmt::format("{}-{}", strategy, ranks);
      EXPECT_TRUE(train(ranks).allclose(expected, 1e-9, 1e-12)) << strategy << " " << ranks;
    }
  }
  recipe_.training.strategy = "ddp";
  recipe_.training.precision = "bf16";
  recipe_.output = folder_.path() / "bf16";
  train(2);
}

TEST_F(TeacherTest, IsNotSaved) {
  train(2);
  const std::string manifest = read_file(recipe_.output / "checkpoints/step-00000008/manifest.json");
  EXPECT_THAT(manifest, HasSubstr("model.weight"));
  EXPECT_THAT(manifest, ::testing::Not(HasSubstr("teacher")));
  EXPECT_LT(std::filesystem::file_size(recipe_.output / "model/model.safetensors"), 600u);
}

struct OwnTeacher : Module {
  OwnTeacher() : student(model(std::make_shared<nn::Linear>(3, 2))) { teacher(student); }
  Loss training_step(const Batch&, StepContext&) override { return {}; }
  std::shared_ptr<nn::Linear> student;
};

TEST_F(TeacherTest, SharesNothingWithTheModel) {
  EXPECT_THAT(
      [&] {
        comm::run_rank_threads(1, [&](Group& group) {
          OwnTeacher module;
          const Mesh mesh = make_mesh(recipe_, group);
          Trainer(recipe_, mesh, at::kCPU).fit(module, SineInputs(8), nullptr);
        });
      },
      ThrowsMessage<ConfigError>(HasSubstr("the teacher's parameter weight is also one of the model")));
  struct Null : Imitation {
    Null() : Imitation(1) { teacher(std::shared_ptr<nn::Linear>()); }
  };
  EXPECT_THAT([] { Null(); },
              ThrowsMessage<ConfigError>(HasSubstr("teacher() was called with a null pointer")));
}

}  // namespace
}  // namespace stretto::trainer
