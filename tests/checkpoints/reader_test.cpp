#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/checkpoint_format/folder.h"

// read_checkpoint.py was written from docs/guide/checkpoints.md alone: if it cannot read a checkpoint, the
// guide is incomplete.
namespace stretto {
namespace {

using ::testing::HasSubstr;

ShellResult python(const std::string& script, const std::string& arguments) {
  return shell(fmt::format("PYTHONDONTWRITEBYTECODE=1 exec {} {}/{} {}", PYTHON, SCRIPTS, script, arguments));
}

class Reader : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(PYTHON).empty()) GTEST_SKIP() << "no Python 3 was found when this build was configured";
  }
};

// The state of every strategy has the same format, whether ranks hold it replicated or in shards.
TEST_F(Reader, FindsTheTrainedModelInACheckpointOfEachStrategy) {
  const std::pair<const char*, const char*> kinds[] = {
      {"ddp", "fp32"}, {"zero1", "fp32"}, {"zero2", "bf16"}, {"fsdp", "fp32"}, {"fsdp", "bf16"}};
  for (const auto& [strategy, precision] : kinds) {
    SCOPED_TRACE(strategy);
    const Workspace workspace;
    workspace.train(
        "run", 2,
        fmt::format("training.precision={} training.strategy={} checkpoint.every=3 evaluate.every=never",
                    precision, strategy));
    const auto checkpoints = checkpoint_format::list_checkpoints(workspace.path("run/checkpoints"));
    ASSERT_EQ(checkpoints.size(), 2u);
    EXPECT_EQ(checkpoints.back().step, 8);
    const std::string last = checkpoints.back().path.string();
    const ShellResult trained = python("compare_with_model.py", last + " " + workspace.path("run/model"));
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_THAT(trained.out, HasSubstr("tensors are equal"));
    const std::string converted = workspace.path("converted");
    const ShellResult conversion =
        shell(fmt::format("exec {} convert {} {} --max-shard-size 5KB", STRETTO_PROGRAM, last, converted));
    EXPECT_EQ(conversion.exit_code, 0) << conversion.err;
    EXPECT_TRUE(std::filesystem::exists(converted + "/model.safetensors.index.json"));
    const ShellResult exported = python("compare_with_model.py", last + " " + converted);
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    const ShellResult earlier =
        python("compare_with_model.py", checkpoints.front().path.string() + " " + converted);
    EXPECT_EQ(earlier.exit_code, 1);
    EXPECT_THAT(earlier.err, HasSubstr("differs"));
  }
}

// A tensor [4, 3] with elements 0 to 11: the left column, and the other columns as two flat shards with a
// boundary inside a row.
TEST_F(Reader, AssemblesPieces) {
  const std::vector<std::pair<Region, std::vector<int32_t>>> pieces = {
      {{{0, 0}, {4, 1}, 0, 4}, {0, 3, 6, 9}},
      {{{0, 1}, {4, 2}, 0, 3}, {1, 2, 4}},
      {{{0, 1}, {4, 2}, 3, 8}, {5, 7, 8, 10, 11}}};
  const std::string file_name = "rank-00000.safetensors";
  checkpoint_format::Manifest manifest;
  std::string bytes = "head";
  checkpoint_format::StoredEntry entry = {"I32", {4, 3}, {}};
  for (const auto& [region, values] : pieces) {
    const std::string_view data(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(int32_t));
    entry.pieces.push_back({region, file_name, std::ssize(bytes), std::ssize(data), hash64(data)});
    bytes += data;
  }
  manifest.tensors["w"] = entry;
  manifest.files[file_name] = {std::ssize(bytes), 4, hash64("head")};
  const TempFolder folder;
  write_file_atomic(folder.path() / file_name, bytes);
  write_file_atomic(folder.path() / checkpoint_format::manifest_name, checkpoint_format::to_text(manifest));
  checkpoint_format::verify(folder.path());
  const ShellResult result = python("read_checkpoint.py", folder.path());
  EXPECT_EQ(result.out, "w I32 [4, 3] 0 1 2 3 4 5 6 7 8 9 10 11\n") << result.err;
}

}  // namespace
}  // namespace stretto
