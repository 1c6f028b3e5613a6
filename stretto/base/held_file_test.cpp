#include "stretto/base/held_file.h"

#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

TEST(HeldFile, ChangesNothingUntilItIsReleased) {
  const TempFolder folder;
  const auto path = folder.path() / "logs/a.log";
  {
    HeldFile file(path, /*hold=*/true);
    file.write("refused\n");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  HeldFile file(path, /*hold=*/true);
  file.write("one\n");
  file.release();
  file.write("two\n");
  file.release();
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  HeldFile(path, /*hold=*/false).write("three\n");
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
}

TEST(HeldFile, BuffersABoundedAmount) {
  const TempFolder folder;
  HeldFile file(folder.path() / "a.log", /*hold=*/true);
  const std::string line(1000, 'x');
  for (int i = 0; i < 1100; ++i) file.write(line);
  EXPECT_EQ(read_file(folder.path() / "a.log").size(), 1'100'000u);
}

}  // namespace
}  // namespace stretto
