#include "stretto/launch/process/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Placement, RankGetsItsShareOfTheCores) {
  EXPECT_THAT(assign_cores({2, 3, 5, 7}, 2, 1), ElementsAre(ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(assign_cores({2, 3, 5, 7}, 2, 2), ElementsAre(ElementsAre(2, 3), ElementsAre(5, 7)));
  EXPECT_THAT(assign_cores({2, 3, 5, 7}, 5, 1), IsEmpty());
  EXPECT_THAT(assign_cores({2, 3, 5, 7}, 2, 3), IsEmpty());
}

TEST(Placement, GpusAreCountedByTheirFiles) {
  const TempFolder folder;
  EXPECT_EQ(count_gpus(std::nullopt, folder.path()), 0);
  EXPECT_EQ(count_gpus("0,1", folder.path()), 0);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia", "null"}) {
    write_file_atomic(folder.path() / name, "");
  }
  EXPECT_EQ(count_gpus(std::nullopt, folder.path()), 3);
  EXPECT_EQ(count_gpus("0, 2", folder.path()), 2);
  EXPECT_EQ(count_gpus("GPU-8932f937,MIG-1", folder.path()), 2);
  EXPECT_EQ(count_gpus("1,-1,2", folder.path()), 1);
  EXPECT_EQ(count_gpus("", folder.path()), 0);
  EXPECT_EQ(count_gpus("NoDevFiles", folder.path()), 0);
}

}  // namespace
}  // namespace stretto::launch
