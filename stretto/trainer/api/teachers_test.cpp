#include "stretto/trainer/api/teachers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/load.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

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

// Two maps, which may be divided among ranks. The values of a teacher begin equal on the ranks of each
// position of data only.
struct DividedMaps : torch::nn::Module {
  DividedMaps(const nn::TensorParallel& ranks, double value) {
    up = register_module("up", std::make_shared<nn::ColumnLinear>(3, 5, ranks));
    down = register_module("down", std::make_shared<nn::RowLinear>(5, 2, ranks));
    at::NoGradGuard no_grad;
    for (const nn::LayerParameter& parameter : nn::layer_parameters(*this)) {
      const TensorLayout layout = parameter.layout();
      const Tensor whole = at::arange(1, count_elements(layout.global) + 1, at::kFloat).view(layout.global);
      Tensor(parameter.tensor).copy_(optim::local_part(layout, whole.sin() * value));
    }
  }
  Tensor forward(const Tensor& x) const { return down->forward(at::tanh(up->forward(x))); }
  std::shared_ptr<nn::ColumnLinear> up;
  std::shared_ptr<nn::RowLinear> down;
};

struct DividedImitation : Module {
  DividedImitation(const nn::TensorParallel& ranks, const nn::TensorParallel& of_teacher,
                   double teacher_value)
      : student(model(std::make_shared<DividedMaps>(ranks, 0.1))),
        large(teacher(std::make_shared<DividedMaps>(of_teacher, teacher_value))) {}
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor x = batch.at("x").to(large->up->weight.scalar_type());
    return loss_of_mean(at::mse_loss(student->forward(x), large->forward(x)), batch.count);
  }
  std::shared_ptr<DividedMaps> student, large;
};

// A student whose layers are divided among ranks imitates a teacher that is whole, or divided as well.
TEST_F(TeacherTest, ADividedStudentTakesTheStepsOfAWholeOne) {
  const SineInputs inputs(24);
  const auto train_on = [&](int ranks, bool teacher_is_divided) {
    recipe_.output = folder_.path() / fmt::format("{}-{}-{}", recipe_.training.strategy, ranks,
                                                  teacher_is_divided ? "divided" : "whole");
    comm::run_rank_threads(ranks, [&](Group& group) {
      const Mesh mesh = make_mesh(recipe_, group);
      const nn::TensorParallel tp = {&mesh.group(Axis::tp)};
      DividedImitation module(tp, teacher_is_divided ? tp : nn::TensorParallel(),
                              0.5 + mesh.position(Axes::data));
      Trainer(recipe_, mesh, at::kCPU).fit(module, inputs, nullptr);
    });
    return SafetensorsFile(recipe_.output / "model/model.safetensors").load("up.weight");
  };
  const Tensor expected = train_on(1, false);
  recipe_.training.mesh.tp = 2;
  for (const char* strategy : {"ddp", "fsdp"}) {
    recipe_.training.strategy = strategy;
    for (const int ranks : {2, 4}) {
      for (const bool divided : {false, true})
        EXPECT_TRUE(train_on(ranks, divided).allclose(expected, 1e-9, 1e-12))
            << strategy << " " << ranks << " " << divided;
    }
  }
}

struct OwnTeacher : Module {
  OwnTeacher() : student(model(std::make_shared<nn::Linear>(3, 2))) { teacher(student); }
  Loss training_step(const Batch&, StepContext&) override { return {}; }
  std::shared_ptr<nn::Linear> student;
};

TEST_F(TeacherTest, SharesNothingWithTheModel) {
  EXPECT_THAT(message_of<ConfigError>([&] {
                comm::run_rank_threads(1, [&](Group& group) {
                  OwnTeacher module;
                  const Mesh mesh = make_mesh(recipe_, group);
                  Trainer(recipe_, mesh, at::kCPU).fit(module, SineInputs(8), nullptr);
                });
              }),
              has_all("teacher's parameter weight", "also one of the model"));
  struct Null : Imitation {
    Null() : Imitation(1) { teacher(std::shared_ptr<nn::Linear>()); }
  };
  EXPECT_THAT(message_of<ConfigError>([] { Null(); }), HasSubstr("teacher() was called with a null pointer"));
}

}  // namespace
}  // namespace stretto::trainer
