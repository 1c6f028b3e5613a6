#include "stretto/programs/stretto/split_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::cli {
namespace {

class SplitLines : public ::testing::Test {
 protected:
  compat::ScriptPlan plan(const std::string& text, double percentage) const {
    compat::ScriptPlan plan;
    plan.split_file = folder_.path() / "corpus.txt";
    plan.split_folder = folder_.path() / "out/data";
    plan.split_percentage = percentage;
    write_file_atomic(plan.split_file, text);
    return plan;
  }
  std::string part(const std::string& name) const { return read_file(folder_.path() / "out/data" / name); }

  TempFolder folder_;
};

TEST_F(SplitLines, TheFirstLinesAreForValidation) {
  split_lines(plan("a\nb\n\nc\nd", 40));
  EXPECT_EQ(part("validation.txt"), "a\nb\n");
  EXPECT_EQ(part("train.txt"), "\nc\nd");
}

// datasets rounds half a line to the even number.
TEST_F(SplitLines, RoundsAsDatasetsDoes) {
  split_lines(plan("1\n2\n3\n4\n5\n", 50));
  EXPECT_EQ(part("validation.txt"), "1\n2\n");
}

TEST_F(SplitLines, RefusesPercentagesThatLeaveAPartEmpty) {
  EXPECT_THROW(split_lines(plan("a\nb\n", 5)), ConfigError);
  EXPECT_THAT(message_of<ConfigError>([&] { split_lines(plan("", 50)); }),
              "--train_file " + (folder_.path() / "corpus.txt").string() + ": there is no text in it");
  EXPECT_THAT(message_of<ConfigError>([&] { split_lines(plan(std::string("a\0b\nc\n", 6), 50)); }),
              ::testing::HasSubstr("the file is not text"));
  compat::ScriptPlan missing = plan("a\nb\nc\n", 34);
  missing.split_file = folder_.path() / "none.txt";
  EXPECT_THROW(split_lines(missing), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "out"));
}

// Newline bytes in compressed data do not end lines.
TEST_F(SplitLines, RefusesCompressedFiles) {
  EXPECT_THROW(split_lines(plan("\x1f\x8b\n\n\n\n", 50)), ConfigError);
  EXPECT_THROW(split_lines(plan("\x28\xb5\x2f\xfd\n\n\n\n", 50)), ConfigError);
}

TEST_F(SplitLines, NeverOverwritesTheTrainingFile) {
  compat::ScriptPlan same = plan("a\nb\nc\n", 34);
  same.split_folder = folder_.path();
  EXPECT_THROW(split_lines(same), ConfigError);
  EXPECT_EQ(read_file(same.split_file), "a\nb\nc\n");
}

}  // namespace
}  // namespace stretto::cli
