#include "stretto/trainer/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/parallel/phase.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

TEST(Profile, PhasesAreDisjointAndAddUpToTheStep) {
  const std::vector<TimedEvent> events = {
      {phase::data, 0.1},      {phase::forward, 1},   {phase::backward, 2},
      {phase::reduce, 0.5},    {phase::wait, 0.25},   {phase::optimizer, 0.125},
      {"aten::mm", 0.5, 1e10}, {"aten::add", 0.2, 0}, {phase::forward, 1}};
  const Profile profile = summarise(events, 2, 5);
  double sum = 0;
  for (const auto& row : profile.rows) sum += row.seconds;
  EXPECT_DOUBLE_EQ(sum, 2.5);
  EXPECT_DOUBLE_EQ(profile.step_seconds, 2.5);
  EXPECT_DOUBLE_EQ(profile.rows[1].seconds, 1);
  EXPECT_DOUBLE_EQ(profile.rows[2].seconds, 0.75) << "without the reductions that are started in it";
  EXPECT_DOUBLE_EQ(profile.matmul_rate, 2e10);
  const std::string text = to_text(profile, 4e10);
  EXPECT_THAT(text, HasSubstr("20 GFLOP/s, 50 % of the peak of 40"));
  EXPECT_THAT(text, HasSubstr("waiting for communication            125.00    5.0 %"));
}

TEST(Profile, OperatorsWithinAMatmulAreCountedOnce) {
  const kernels::MatmulShape shape = {kernels::MatmulRole::forward, at::kFloat, 3, 4, 5};
  const TimedEvent matmul = {"stretto::forward_matmul", 0.5, shape.operations(), shape, 1, 10};
  const std::vector<TimedEvent> events = {{"aten::mm", 0.4, shape.operations(), {}, 1, 10.05},
                                          matmul,
                                          {"aten::mm", 0.4, shape.operations(), {}, 2, 10.05},
                                          {"aten::mm", 0.3, shape.operations(), {}, 1, 10.6}};
  const Profile profile = summarise(events, 1, 5);
  EXPECT_DOUBLE_EQ(profile.matmul_seconds, 0.5 + 0.4 + 0.3);
  EXPECT_DOUBLE_EQ(profile.other_matmul_seconds, 0.4 + 0.3);
  EXPECT_EQ(profile.layer_matmuls, (std::map<kernels::MatmulShape, int64_t>{{shape, 1}}));
}

TEST(Profile, MatmulsOfLayersAreRecognisedByTheirOperands) {
  const std::vector<std::vector<int64_t>> forward = {{3, 4}, {4, 5}}, input = {{3, 5}, {5, 4}},
                                          weight = {{5, 3}, {3, 4}};
  using kernels::MatmulRole;
  using kernels::MatmulShape;
  EXPECT_EQ(layer_matmul("stretto::forward_matmul", forward, "float"),
            (MatmulShape{MatmulRole::forward, at::kFloat, 3, 4, 5}));
  EXPECT_EQ(layer_matmul("stretto::input_gradient_matmul", input, "c10::BFloat16"),
            (MatmulShape{MatmulRole::input_gradient, at::kBFloat16, 3, 4, 5}));
  EXPECT_EQ(layer_matmul("stretto::weight_gradient_matmul", weight, "float"),
            (MatmulShape{MatmulRole::weight_gradient, at::kFloat, 3, 4, 5}));
  EXPECT_EQ(layer_matmul("aten::mm", forward, "float"), std::nullopt);
}

TEST(Profile, TheFloorIsTheTimeOfTheMatmulsAlone) {
  Profile profile;
  profile.steps = 2;
  profile.layer_matmuls = {{{kernels::MatmulRole::forward, at::kFloat, 64, 64, 64}, 4}};
  profile.other_matmul_seconds = 0.25;
  const MatmulFloor floor = measure_floor(profile);
  const auto& aten = floor.rates.at({kernels::MatmulRole::forward, kernels::MatmulLibrary::aten});
  EXPECT_EQ(aten.operations, 4 * 2.0 * 64 * 64 * 64);
  EXPECT_GT(floor.seconds, 0.25);
  EXPECT_LE(floor.seconds, 0.25 + aten.seconds / 2) << "the fastest library is no slower";
  const std::string text =
      to_text({.seconds = 0.1,
               .rates = {{{kernels::MatmulRole::forward, kernels::MatmulLibrary::onednn}, {2e9, 0.01}}}},
              0.15);
  EXPECT_THAT(text, HasSubstr("forward                          onednn 200 GFLOP/s alone\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "floor 100.00 ms: the matmuls alone, by the fastest library; the step takes 1.50 times as long"));
}

TEST(Profile, OperationsOfMatmuls) {
  const std::vector<std::vector<int64_t>> two = {{3, 4}, {4, 5}}, three = {{5}, {3, 4}, {4, 5}},
                                          batched = {{2, 3, 4}, {2, 4, 5}};
  EXPECT_EQ(matmul_operations("aten::mm", two), 2 * 3 * 4 * 5);
  EXPECT_EQ(matmul_operations("aten::addmm", three), 2 * 3 * 4 * 5);
  EXPECT_EQ(matmul_operations("aten::bmm", batched), 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(matmul_operations("aten::add", two), 0);
  EXPECT_EQ(matmul_operations("aten::addmm", two), 0) << "an input is missing";
}

}  // namespace
}  // namespace stretto::trainer
