#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/checkpoint/checkpoint_fixture.h"
#include "stretto/tensor/safetensors.h"

// Which rank writes an entry that several ranks hold.
namespace stretto::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(Checkpoint, ReplicatedTensorsAreWrittenOnceByDifferentRanks) {
  const TempFolder folder;
  save_state(folder.path(), 2, on_each_rank);
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  const SafetensorsFile first(path / "rank-00000.safetensors"), second(path / "rank-00001.safetensors");
  EXPECT_EQ(first.names().size() + second.names().size(), 5u);
  EXPECT_GT(second.names().size(), 0u);
  EXPECT_TRUE(first.load("model.w").equal(replicated_state(1).tensors[0].pieces[0].data.view({30, 4})));
}

// The pairs of ranks 0 1 | 2 3 have "pair", 0 2 | 1 3 have a half of "halves", and all have "all". Each set
// lists its entries in a different order.
TEST(Checkpoint, EachSetOfHoldersDividesItsEntries) {
  const TempFolder folder;
  const auto state = [](int rank) {
    const Holders all = {.set = 1, .ranks = 4, .me = rank}, pair = {.set = 2, .ranks = 2, .me = rank % 2},
                  column = {.set = 3, .ranks = 2, .me = rank / 2};
    State state;
    for (int i = 0; i < 8; ++i) {
      const int number = rank % 2 == 0 ? i : 7 - i;
      const Tensor values = at::full({6}, number, at::kInt);
      state.tensors.push_back(whole_entry(fmt::format("all.{}", number), {6}, values, all));
      state.tensors.push_back(whole_entry(fmt::format("pair.{}.{}", rank / 2, number), {6}, values, pair));
      state.tensors.push_back(
          part_entry(fmt::format("halves.{}", number), TensorLayout{{12}}, rank % 2 * 6, values, column));
    }
    return state;
  };
  save_state(folder.path(), 4, [&](const Group& group) { return state(group.rank()); });
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  checkpoint_format::verify(path);
  for (int rank = 0; rank < 4; ++rank) {
    const SafetensorsFile file(path / fmt::format("rank-{:05}.safetensors", rank));
    EXPECT_EQ(file.names().size(), 8u / 4 + 8 / 2 + 8 / 2) << rank;
  }
  comm::run_rank_threads(4, [&](Group& group) {
    State read = state(group.rank());
    for (const Entry& entry : read.tensors) entry.pieces[0].data.zero_();
    load(group, path, read);
    const State written = state(group.rank());
    for (size_t i = 0; i < read.tensors.size(); ++i)
      EXPECT_TRUE(read.tensors[i].pieces[0].data.equal(written.tensors[i].pieces[0].data));
  });
}

// A checkpoint with pieces that two ranks write, or no rank, is not committed.
TEST(Checkpoint, AWrongSetOfHoldersIsDetectedBeforeTheCommit) {
  const TempFolder folder;
  comm::run_rank_threads(2, [&](Group& group) {
    Writer writer(group, {.folder = folder.path()});
    writer.save(replicated_state(1), 1);
    EXPECT_THAT(writer.finish(), HasSubstr("lies in 2 of its pieces, in rank-00000.safetensors, rank-00001"));
    State state = replicated_state(1, comm::holders_of(group));
    if (group.rank() == 1) state.tensors.pop_back();
    if (group.rank() == 1) state.tensors.erase(state.tensors.begin());
    writer.save(state, 2);
    EXPECT_THAT(writer.finish(), HasSubstr("lies in"));
    state = replicated_state(1, comm::holders_of(group));
    if (group.rank() == 1) state.tensors[0].shape = {4, 30};
    writer.save(state, 3);
    EXPECT_THAT(writer.finish(),
                has_all("tensor model.w ", "F32 [30, 4] on one rank", "F32 [4, 30] on another"));
  });
  EXPECT_THAT(checkpoint_format::list_checkpoints(folder.path()), ::testing::IsEmpty());
}

// Each tensor of the checkpoint must be in the table of a rank; which one does not matter.
TEST(Checkpoint, TablesOfRanksMayDiffer) {
  const TempFolder folder;
  save_state(folder.path(), 1, on_each_rank);
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  comm::run_rank_threads(2, [&](Group& group) {
    State state = replicated_state(2);
    std::erase_if(state.tensors,
                  [&](const Entry& entry) { return (entry.name < "model.none") == (group.rank() == 0); });
    load(group, path, state);
    EXPECT_TRUE(state.tensors[0].pieces[0].data.equal(
        replicated_state(1).tensors[group.rank() == 0 ? 0 : 1].pieces[0].data));
    if (group.rank() == 1) state.tensors.pop_back();
    EXPECT_THAT(message_of<DataError>([&] { load(group, path, state); }), HasSubstr("that this run has not"));
    if (group.rank() == 0) state.tensors[0].shape = {4, 30};
    EXPECT_THAT(message_of<DataError>([&] { load(group, path, state); }),
                HasSubstr("[30, 4] there and [4, 30] here"))
        << "also at the rank whose tensors fit";
  });
}

}  // namespace
}  // namespace stretto::checkpoint
