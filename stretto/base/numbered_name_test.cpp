#include "stretto/base/numbered_name.h"

#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

TEST(NumberedName, FollowsTheHighest) {
  const TempFolder folder;
  const auto path = folder.path() / "previous";
  EXPECT_EQ(next_numbered(folder.path() / "none/previous"), folder.path() / "none/previous-1");
  EXPECT_EQ(next_numbered(path), folder.path() / "previous-1");
  for (const char* name :
       {"previous", "previous-2", "previous-10", "previous-x", "previous-30.old", "other-20"})
    make_folders(folder.path() / name);
  EXPECT_EQ(next_numbered(path), folder.path() / "previous-11");
}

}  // namespace
}  // namespace stretto
