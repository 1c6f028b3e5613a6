#include "stretto/checkpoint/transfer.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/checkpoint_fixture.h"

namespace stretto::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Ranks 1 and 2 represent hosts with separate folders.
class SeparateFolders : public ::testing::Test {
 protected:
  std::filesystem::path folder(int rank) const {
    return temporary_.path() / std::to_string(rank) / "checkpoints";
  }
  bool is_empty(int rank) const {
    return !std::filesystem::exists(folder(rank)) || std::filesystem::is_empty(folder(rank));
  }
  // Saves steps 1, 2, ...; before each, `prepare` is called at rank 0. Returns the reasons of failures by
  // step.
  std::vector<std::string> save(int64_t steps, const std::function<void(int64_t step)>& prepare = {}) const {
    std::vector<std::string> reasons;
    comm::run_rank_threads(3, [&](Group& group) {
      Writer writer(group, {.folder = folder(group.rank())});
      for (int64_t step = 1; step <= steps; ++step) {
        if (group.rank() == 0 && prepare) prepare(step);
        group.barrier();
        writer.save(sharded_state(group.rank(), 3, /*by_rows=*/false, /*filled=*/true), step);
        const std::string reason = writer.finish();
        if (group.rank() == 0) reasons.push_back(reason);
        EXPECT_EQ(group.broadcast_bytes(reason, 0), reason) << "ranks differ";
      }
    });
    return reasons;
  }
  TempFolder temporary_;
};

TEST_F(SeparateFolders, Rank0KeepsTheFilesOfAllAndOthersFetchThem) {
  make_folders(folder(2) / "step-00000009.of-rank-2");  // left by an interrupted save
  EXPECT_THAT(save(2), ::testing::Each(""));
  EXPECT_EQ(checkpoint_format::list_checkpoints(folder(0)).size(), 2u);
  checkpoint_format::verify(checkpoint_format::checkpoint_path(folder(0), 2));
  for (const int rank : {1, 2}) EXPECT_TRUE(is_empty(rank)) << rank;
  comm::run_rank_threads(3, [&](Group& group) {
    State state = sharded_state(group.rank(), 3, /*by_rows=*/true, /*filled=*/false);
    {
      const auto own_path = checkpoint_format::checkpoint_path(folder(group.rank()), 2);
      ReadableCheckpoint readable(group, own_path, folder(group.rank()), std::chrono::milliseconds(0));
      EXPECT_EQ(readable.path() == own_path, group.rank() == 0);
      readable.fetch(state);
      load(group, readable.path(), state);
    }
    const State expected = sharded_state(group.rank(), 3, /*by_rows=*/true, /*filled=*/true);
    EXPECT_TRUE(at::equal(state.tensors[0].pieces[0].data, expected.tensors[0].pieces[0].data));
  });
  for (const int rank : {1, 2}) EXPECT_TRUE(is_empty(rank)) << "the copies were removed";
}

// What a host's ranks do not read is not sent to it, and what all read arrives everywhere.
TEST_F(SeparateFolders, AHostFetchesOnlyWhatItsRanksRead) {
  EXPECT_THAT(save(1), ::testing::Each(""));
  comm::run_rank_threads(3, [&](Group& group) {
    const auto files_after = [&](State state) {
      const auto own_path = checkpoint_format::checkpoint_path(folder(group.rank()), 1);
      ReadableCheckpoint readable(group, own_path, folder(group.rank()), std::chrono::milliseconds(0));
      readable.fetch(state);
      load(group, readable.path(), state);
      const Piece& piece = state.tensors[0].pieces[0];
      EXPECT_EQ(piece.data.flatten()[0].item<float>(), static_cast<float>(piece.region.flat_begin));
      std::set<std::string> files;
      for (const auto& entry : std::filesystem::directory_iterator(readable.path()))
        files.insert(entry.path().filename());
      return files;
    };
    const std::string own = fmt::format("rank-{:05}.safetensors", group.rank());
    const std::set<std::string> all = {"manifest.json", "rank-00000.safetensors", "rank-00001.safetensors",
                                       "rank-00002.safetensors"};
    const auto of_shard = files_after(sharded_state(group.rank(), 3, /*by_rows=*/false, /*filled=*/false));
    EXPECT_EQ(of_shard, group.rank() == 0 ? all : (std::set<std::string>{"manifest.json", own}));
    EXPECT_EQ(files_after(sharded_state(0, 1, /*by_rows=*/false, /*filled=*/false)), all);
  });
}

TEST_F(SeparateFolders, RanksOfAHostReadOneCopy) {
  EXPECT_THAT(save(1), ::testing::Each(""));
  comm::run_rank_threads(3, [&](Group& group) {
    State state = sharded_state(group.rank(), 3, /*by_rows=*/false, /*filled=*/false);
    const std::filesystem::path own = folder(std::min(group.rank(), 1));  // ranks 1 and 2 are of one host
    ReadableCheckpoint readable(group, checkpoint_format::checkpoint_path(own, 1), own,
                                std::chrono::milliseconds(0));
    readable.fetch(state);
    load(group, readable.path(), state);
    const State expected = sharded_state(group.rank(), 3, /*by_rows=*/false, /*filled=*/true);
    EXPECT_TRUE(at::equal(state.tensors[0].pieces[0].data, expected.tensors[0].pieces[0].data));
    EXPECT_EQ(readable.path() == separate_folder(own, 1, 1), group.rank() > 0);
  });
  EXPECT_TRUE(is_empty(1)) << "the copy was removed";
}

// The failure is on the rank that writes its file, or on rank 0, which receives it.
TEST_F(SeparateFolders, AFailureAnywhereCommitsNothing) {
  const auto reasons = save(4, [&](int64_t step) {
    if (step == 2)
      make_folders(separate_folder(folder(1), step, 1) / "rank-00001.safetensors" / "in the way");
    if (step == 3)
      make_folders(checkpoint_format::partial_path(folder(0), step) / "rank-00002.safetensors" /
                   "in the way");
  });
  EXPECT_EQ(reasons[0], "");
  EXPECT_THAT(reasons[1], AllOf(HasSubstr("rank 1: "), HasSubstr("rank-00001.safetensors")));
  EXPECT_THAT(reasons[2], HasSubstr("rank-00002.safetensors"));
  EXPECT_EQ(reasons[3], "");
  const auto left = checkpoint_format::list_checkpoints(folder(0));
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[1].step, 4);
  EXPECT_THAT(checkpoint_format::list_partial(folder(0)), ::testing::IsEmpty());
  for (const int rank : {1, 2}) EXPECT_TRUE(is_empty(rank)) << rank;
}

}  // namespace
}  // namespace stretto::checkpoint
