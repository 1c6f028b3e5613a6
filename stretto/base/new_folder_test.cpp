#include "stretto/base/new_folder.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

TEST(NewFolder, IsRemovedWithItsParentsIfEmpty) {
  const TempFolder temporary;
  for (const char* name : {"a/b/c", "a/b/c/"}) {
    {
      NewFolder first(temporary.path() / name);
      const NewFolder moved(std::move(first));
      EXPECT_TRUE(std::filesystem::is_directory(temporary.path() / "a/b/c"));
    }
    EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
  }
}

TEST(NewFolder, KeepsExistingFoldersAndThoseInUse) {
  const TempFolder temporary;
  make_folders(temporary.path() / "a");
  {
    const NewFolder folder(temporary.path() / "a/b/c");
    const NewFolder same(temporary.path() / "a/b/c");
    write_file_atomic(temporary.path() / "a/b/file", "");
  }
  EXPECT_FALSE(std::filesystem::exists(temporary.path() / "a/b/c"));
  EXPECT_TRUE(std::filesystem::exists(temporary.path() / "a/b/file"));
  std::filesystem::remove_all(temporary.path() / "a/b");
  {
    const NewFolder folder(temporary.path() / "a/b/c");
    std::filesystem::remove(temporary.path() / "a/b/c");
  }
  EXPECT_FALSE(std::filesystem::exists(temporary.path() / "a/b"));
  { const NewFolder folder(temporary.path() / "a"); }
  EXPECT_TRUE(std::filesystem::exists(temporary.path() / "a"));
}

TEST(NewFolder, AnExistingFileIsNamed) {
  const TempFolder temporary;
  write_file_atomic(temporary.path() / "file", "");
  EXPECT_THAT(message_of<IoError>([&] { NewFolder(temporary.path() / "file/a"); }),
              ::testing::HasSubstr("cannot create the folder"));
  EXPECT_TRUE(std::filesystem::exists(temporary.path() / "file"));
}

}  // namespace
}  // namespace stretto
