#include "stretto/checkpoint_format/folder.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"
#include "stretto/base/replaced_folder.h"
#include "stretto/base/temp_folder.h"

namespace stretto::checkpoint_format {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string file_name = "rank-00000.safetensors";

class Folder : public ::testing::Test {
 protected:
  // A checkpoint of one tensor of eight bytes after a header of four.
  void add(int64_t step, std::optional<double> score = std::nullopt) const {
    const std::filesystem::path path = checkpoint_path(temp_.path(), step);
    make_folders(path);
    write_file_atomic(path / file_name, "head12345678");
    Manifest manifest;
    manifest.step = step;
    manifest.files[file_name] = {12, 4, hash64("head")};
    manifest.tensors["w"] = {"F64", {}, {{whole_region({}), file_name, 4, 8, hash64("12345678")}}};
    if (score) manifest.score = Score{"loss", *score, false};
    write_file_atomic(path / manifest_name, to_text(manifest));
  }
  void damage(int64_t step) const {
    write_file_atomic(checkpoint_path(temp_.path(), step) / file_name, "head12345679");
  }
  std::vector<int64_t> steps() const { return steps_of(list_checkpoints(temp_.path())); }
  std::vector<int64_t> gone(const Retention& retention) const {
    return steps_of(superseded(list_checkpoints(temp_.path()), retention));
  }
  static std::vector<int64_t> steps_of(const std::vector<Checkpoint>& checkpoints) {
    std::vector<int64_t> steps(checkpoints.size());
    std::ranges::transform(checkpoints, steps.begin(), &Checkpoint::step);
    return steps;
  }
  std::string verify_error(int64_t step) const {
    try {
      verify(checkpoint_path(temp_.path(), step));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TempFolder temp_;
};

TEST_F(Folder, VerificationReportsItsProgress) {
  add(1);
  std::vector<int64_t> parts;
  verify(checkpoint_path(temp_.path(), 1), [&](int64_t bytes) { parts.push_back(bytes); });
  EXPECT_THAT(parts, ElementsAre(4, 8)) << "the header, the tensor";
  damage(1);
  parts.clear();
  EXPECT_THROW(verify(checkpoint_path(temp_.path(), 1), [&](int64_t bytes) { parts.push_back(bytes); }),
               DataError);
  EXPECT_THAT(parts, ElementsAre(4));
}

TEST_F(Folder, IsListedByStep) {
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_THAT(list_checkpoints(temp_.path() / "absent"), IsEmpty());
  for (const int64_t step : {100, 20, 3}) add(step);
  make_folders(partial_path(temp_.path(), 200));
  make_folders(temp_.path() / "step-x");
  write_file_atomic(temp_.path() / "notes", "");
  EXPECT_THAT(steps(), ElementsAre(3, 20, 100));
}

TEST_F(Folder, MissingAndTruncatedFilesAreNamed) {
  add(1);
  const std::filesystem::path path = checkpoint_path(temp_.path(), 1) / file_name;
  write_file_atomic(path, "head123");
  EXPECT_THAT(verify_error(1), HasSubstr(path.string() + ": it has 7 bytes; the manifest says 12"));
  std::filesystem::remove(path);
  EXPECT_THAT(verify_error(1), HasSubstr(path.string() + ": the file is missing"));
  std::filesystem::remove(checkpoint_path(temp_.path(), 1) / manifest_name);
  EXPECT_THAT(verify_error(1), HasSubstr("manifest.json: the file is missing"));
}

TEST_F(Folder, TheNameOfTheFolderMatchesTheStep) {
  add(1);
  std::filesystem::rename(checkpoint_path(temp_.path(), 1), checkpoint_path(temp_.path(), 7));
  EXPECT_THAT(verify_error(7), has_all("manifest of step 1", "folder is that of step 7"));
  std::filesystem::rename(checkpoint_path(temp_.path(), 7), temp_.path() / "kept");
  EXPECT_NO_THROW(verify(temp_.path() / "kept"));
  std::filesystem::create_directory_symlink(checkpoint_path(temp_.path(), 9),
                                            checkpoint_path(temp_.path(), 9));
  EXPECT_THAT(verify_error(9), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(Folder, TheNewestGoodOneIsFound) {
  EXPECT_FALSE(newest_good(temp_.path()));
  for (const int64_t step : {1, 2, 3}) add(step);
  EXPECT_EQ(newest_good(temp_.path())->step, 3);
  damage(3);
  EXPECT_EQ(newest_good(temp_.path())->step, 2);
  damage(2);
  damage(1);
  EXPECT_THROW(newest_good(temp_.path()), DataError);
}

TEST_F(Folder, RetentionKeepsTheLastTheBestAndMultiples) {
  const std::vector<double> loss = {0.1, 0.5, 0.2, 0.4, 0.3, 0.6};
  for (size_t i = 0; i < loss.size(); ++i) add(10 * static_cast<int64_t>(i + 1), loss[i]);
  EXPECT_THAT(gone({.last = 0}), IsEmpty());
  EXPECT_THAT(gone({.last = 2}), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(gone({.last = 1, .best = 2}), ElementsAre(20, 40, 50));
  EXPECT_THAT(gone({.last = 1, .every_steps = 20}), ElementsAre(10, 30, 50));
  EXPECT_THAT(gone({.last = 9}), IsEmpty());
}

TEST_F(Folder, RemovalKeepsTheOthers) {
  add(1);
  add(2);
  make_folders(partial_path(temp_.path(), 3) / "inner");
  remove(list_checkpoints(temp_.path())[0]);
  remove_partial(temp_.path());
  EXPECT_THAT(steps(), ElementsAre(2));
  EXPECT_FALSE(std::filesystem::exists(partial_path(temp_.path(), 3)));
}

// Without RENAME_EXCHANGE a process may die between the two renames of a replacement.
TEST_F(Folder, AnInterruptedReplacementLeavesTheCheckpoint) {
  add(1);
  add(2);
  std::filesystem::rename(checkpoint_path(temp_.path(), 2), replaced_path(checkpoint_path(temp_.path(), 2)));
  make_folders(partial_path(temp_.path(), 2));
  remove_partial(temp_.path());
  EXPECT_EQ(newest_good(temp_.path())->step, 2);
  add(2);
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  remove_partial(temp_.path());
  EXPECT_FALSE(std::filesystem::exists(replaced_path(checkpoint_path(temp_.path(), 2))));
}

TEST_F(Folder, CopiesOfCheckpointsAreNotLeftovers) {
  const std::vector<std::string> left = {"step-00000003.of-rank-2", "step-00000003.partial",
                                         "step-00000003.partial.removing", "step-00000003.removing"};
  const std::vector<std::string> copies = {"step-00000003-good", "step-00000003.bak", "step-best"};
  for (const auto& names : {left, copies})
    for (const std::string& name : names) make_folders(temp_.path() / name);
  std::vector<std::string> listed;
  for (const auto& path : list_partial(temp_.path())) listed.push_back(path.filename());
  EXPECT_EQ(listed, left);
  remove_partial(temp_.path());
  for (const std::string& name : copies) EXPECT_TRUE(std::filesystem::exists(temp_.path() / name)) << name;
}

}  // namespace
}  // namespace stretto::checkpoint_format
