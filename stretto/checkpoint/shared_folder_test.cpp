#include "stretto/checkpoint/shared_folder.h"

#include <gtest/gtest.h>

#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"

namespace stretto::checkpoint {
namespace {

TEST(SharedFolder, IsDetectedOnAllKindsOfFileSystems) {
  const TempFolder folder;
  comm::run_rank_threads(4, [&](Group& group) {
    // Ranks 0 and 1 have the same folder; the others have none, on a file system of the host and on one that
    // may be slow.
    const std::filesystem::path folders[] = {folder.path(), folder.path(), folder.path() / "absent/run",
                                             "/proc/self/run"};
    const SharedFolder shared(group, folders[group.rank()], std::chrono::milliseconds(120));
    EXPECT_EQ(shared.ranks_without_access(), (std::vector<int>{2, 3}));
    EXPECT_EQ(shared.receiver_of(3), 3);
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing remains";
}

}  // namespace
}  // namespace stretto::checkpoint
