#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/checkpoint_format/folder.h"

// Checkpoints of an earlier version are resumed, and the losses equal those that this version logged
// afterwards. Both are committed; scripts/make_golden_checkpoints.py describes them.
namespace stretto {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* name;
  // The largest accepted relative difference of a loss or gradient norm. The build that wrote the checkpoint
  // has none on 2 ranks. With another number of ranks, or with ATen's operators without vector instructions
  // instead of stretto's kernels, differences were up to 3.1e-7 in fp32 and 0.015 in bf16; with another
  // momentum, beta or seed they exceed 0.08.
  double tolerance;
};

class GoldenCheckpoint : public ::testing::TestWithParam<std::tuple<Case, int>> {};

TEST_P(GoldenCheckpoint, IsResumedWithTheLossesOfItsRun) {
  const auto [golden, ranks] = GetParam();
  const TempFolder folder;
  std::filesystem::copy(GOLDEN_CHECKPOINTS, folder.path(), std::filesystem::copy_options::recursive);
  const ShellResult result = shell(
      fmt::format("cd {} && OMP_NUM_THREADS=1 {} train {}.yaml -N {} --no-pin --set resume={}/step-00000003",
                  folder.path().string(), STRETTO_PROGRAM, golden.name, ranks, golden.name));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("resumed    after step 3"));

  auto expected = read_json_lines(read_file(folder.path() / golden.name / "metrics.jsonl"));
  std::erase_if(expected, [](const nlohmann::json& record) { return record.at("step") <= 3; });
  const auto records = read_json_lines(read_file(folder.path() / "run/metrics.jsonl"));
  ASSERT_EQ(records.size(), expected.size());
  ASSERT_EQ(records.size(), 12u + 3u) << "12 steps and 3 evaluations";
  for (size_t i = 0; i < records.size(); ++i) {
    for (const char* key : {"step", "lr", "loss", "grad_norm", "eval_loss"}) {
      ASSERT_EQ(records[i].contains(key), expected[i].contains(key)) << key << " of " << records[i];
      if (!expected[i].contains(key)) continue;
      const double wanted = expected[i][key].get<double>(), found = records[i][key].get<double>();
      EXPECT_NEAR(found, wanted, std::abs(wanted) * golden.tolerance) << key << " of " << records[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenCheckpoint,
                         ::testing::Combine(::testing::Values(Case{"adamw_fp32", 2e-6},
                                                              Case{"sgd_bf16", 0.04}),
                                            ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param).name, std::get<1>(info.param));
                         });

}  // namespace
}  // namespace stretto
