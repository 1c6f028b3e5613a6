#include <gtest/gtest.h>

#include "stretto/base/range.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/checkpoint_fixture.h"

namespace stretto::checkpoint {
namespace {

TEST(Checkpoint, RestoresEveryBit) {
  for (const bool background : {false, true}) {
    for (const int ranks : {1, 2, 3}) {
      const TempFolder folder;
      save_state(folder.path(), ranks, on_each_rank, background);
      const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
      checkpoint_format::verify(path);
      const State written = replicated_state(1);
      State read = replicated_state(2);
      EXPECT_EQ(load_alone(path, read).world_size, ranks);
      for (size_t i = 0; i < read.tensors.size(); ++i) {
        EXPECT_TRUE(read.tensors[i].pieces[0].data.equal(written.tensors[i].pieces[0].data))
            << read.tensors[i].name;
      }
      EXPECT_EQ(read.scalars.at("place")["epoch"], 1);
    }
  }
}

TEST(Checkpoint, LoadsOnAnyNumberOfRanksAndAnyLayout) {
  for (const int wrote : {1, 2, 4}) {
    for (const bool rows_written : {true, false}) {
      const TempFolder folder;
      save_state(folder.path(), wrote,
                 [&](const Group& group) { return sharded_state(group.rank(), wrote, rows_written, true); });
      for (const int reads : {1, 2, 3}) {
        for (int rank = 0; rank < reads; ++rank) {
          for (const bool rows_read : {true, false}) {
            State state = sharded_state(rank, reads, rows_read, false);
            load_alone(checkpoint_format::checkpoint_path(folder.path(), 5), state);
            const State expected = sharded_state(rank, reads, rows_read, true);
            EXPECT_TRUE(state.tensors[0].pieces[0].data.equal(expected.tensors[0].pieces[0].data));
          }
        }
      }
    }
  }
}

// A piece need not be contiguous in memory: a cut layer owns columns of a larger tensor.
TEST(Checkpoint, PiecesMayBeStrided) {
  const auto columns_of = [](const Tensor& memory) {
    Entry entry = {.name = "w", .shape = {6, 4}, .pieces = {}};
    for (const auto& [begin, end] : {Range{0, 1}, Range{1, 4}})
      entry.pieces.push_back(
          {{{0, begin}, {6, end - begin}, 0, 6 * (end - begin)}, memory.slice(1, begin, end)});
    State state;
    state.tensors.push_back(entry);
    return state;
  };
  const Tensor memory = at::arange(30, at::kFloat).view({6, 5});
  for (const bool background : {true, false}) {
    const TempFolder folder;
    save_state(
        folder.path(), 1, [&](const Group&) { return columns_of(memory); }, background);
    const Tensor read = at::full({6, 5}, -1.0, at::kFloat);
    State state = columns_of(read);
    load_alone(checkpoint_format::checkpoint_path(folder.path(), 5), state);
    EXPECT_TRUE(read.slice(1, 0, 4).equal(memory.slice(1, 0, 4)));
    EXPECT_TRUE(read.select(1, 4).eq(-1).all().item<bool>());
  }
}

}  // namespace
}  // namespace stretto::checkpoint
