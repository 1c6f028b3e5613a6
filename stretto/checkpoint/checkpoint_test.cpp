#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/range.h"
#include "stretto/base/temp_folder.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint/transfer.h"
#include "stretto/checkpoint/writer.h"
#include "stretto/comm/holders.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/tensor/safetensors.h"

// Saves tables of live memory and loads them back, with ranks as threads.
namespace stretto::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The state of a data-parallel run: every rank has all tensors.
State replicated_state(int seed, const Holders& holders = {}) {
  // Each rank has a separate generator, because ranks are threads.
  auto random = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
  State state;
  state.tensors.push_back(whole_entry("model.w", {30, 4}, at::randn({120}, random), holders));
  state.tensors.push_back(whole_entry("model.b", {4}, at::randn({4}, random), holders));
  state.tensors.push_back(whole_entry("model.steps", {}, at::full({1}, seed, at::kLong), holders));
  state.tensors.push_back(whole_entry("model.half", {7}, at::randn({7}, random).to(at::kBFloat16), holders));
  state.tensors.push_back(whole_entry("model.none", {0, 3}, at::empty({0}), holders));
  state.scalars["place"] = {{"epoch", seed}};
  return state;
}

// A state with one tensor [6, 4], which is divided among ranks by rows, or as flat shards that end inside
// rows.
State sharded_state(int rank, int ranks, bool by_rows, bool filled) {
  const Tensor whole = at::arange(24, at::kFloat);
  Entry entry = {.name = "w", .shape = {6, 4}, .pieces = {}};
  Piece piece;
  if (by_rows) {
    const int64_t begin = 6 * rank / ranks, end = 6 * (rank + 1) / ranks;
    piece = {{{begin, 0}, {end - begin, 4}, 0, (end - begin) * 4},
             whole.slice(0, begin * 4, end * 4).clone()};
  } else {
    const int64_t begin = 24 * rank / ranks, end = 24 * (rank + 1) / ranks;
    piece = {flat_region({6, 4}, begin, end), whole.slice(0, begin, end).clone()};
  }
  if (!filled) piece.data.fill_(-1);
  entry.pieces.push_back(piece);
  State state;
  state.tensors.push_back(entry);
  return state;
}

void save(const std::filesystem::path& folder, int ranks, const std::function<State(const Group&)>& state,
          bool background = true) {
  comm::run_rank_threads(ranks, [&](Group& group) {
    Writer writer(group, {.folder = folder, .background = background});
    writer.save(state(group), 5);
    EXPECT_EQ(writer.finish(), "");
  });
}

State on_each_rank(const Group& group) { return replicated_state(1, comm::holders_of(group)); }

checkpoint_format::Manifest load_alone(const std::filesystem::path& checkpoint, State& state) {
  checkpoint_format::Manifest manifest;
  comm::run_rank_threads(1, [&](Group& group) { manifest = load(group, checkpoint, state); });
  return manifest;
}

std::string load_error(const std::filesystem::path& checkpoint, State state) {
  try {
    load_alone(checkpoint, state);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Checkpoint, RestoresEveryBit) {
  for (const bool background : {false, true}) {
    for (const int ranks : {1, 2, 3}) {
      const TempFolder folder;
      save(folder.path(), ranks, on_each_rank, background);
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

TEST(Checkpoint, ReplicatedTensorsAreWrittenOnceByDifferentRanks) {
  const TempFolder folder;
  save(folder.path(), 2, on_each_rank);
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
  save(folder.path(), 4, [&](const Group& group) { return state(group.rank()); });
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
                HasSubstr("tensor model.w is F32 [30, 4] on one rank and F32 [4, 30] on another"));
  });
  EXPECT_THAT(checkpoint_format::list_checkpoints(folder.path()), ::testing::IsEmpty());
}

// Each tensor of the checkpoint must be in the table of a rank; which one does not matter.
TEST(Checkpoint, TablesOfRanksMayDiffer) {
  const TempFolder folder;
  save(folder.path(), 1, on_each_rank);
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  comm::run_rank_threads(2, [&](Group& group) {
    State state = replicated_state(2);
    std::erase_if(state.tensors,
                  [&](const Entry& entry) { return (entry.name < "model.none") == (group.rank() == 0); });
    load(group, path, state);
    EXPECT_TRUE(state.tensors[0].pieces[0].data.equal(
        replicated_state(1).tensors[group.rank() == 0 ? 0 : 1].pieces[0].data));
    if (group.rank() == 1) state.tensors.pop_back();
    EXPECT_THAT([&] { load(group, path, state); },
                ::testing::ThrowsMessage<DataError>(HasSubstr("that this run has not")));
    if (group.rank() == 0) state.tensors[0].shape = {4, 30};
    EXPECT_THAT([&] { load(group, path, state); },
                ::testing::ThrowsMessage<DataError>(HasSubstr("[30, 4] there and [4, 30] here")))
        << "also at the rank whose tensors fit";
  });
}

TEST(Checkpoint, LoadsOnAnyNumberOfRanksAndAnyLayout) {
  for (const int wrote : {1, 2, 4}) {
    for (const bool rows_written : {true, false}) {
      const TempFolder folder;
      save(folder.path(), wrote,
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
    save(
        folder.path(), 1, [&](const Group&) { return columns_of(memory); }, background);
    const Tensor read = at::full({6, 5}, -1.0, at::kFloat);
    State state = columns_of(read);
    load_alone(checkpoint_format::checkpoint_path(folder.path(), 5), state);
    EXPECT_TRUE(read.slice(1, 0, 4).equal(memory.slice(1, 0, 4)));
    EXPECT_TRUE(read.select(1, 4).eq(-1).all().item<bool>());
  }
}

TEST(Checkpoint, TheSnapshotIsTakenWhenSaveReturns) {
  const TempFolder folder;
  State state = replicated_state(1);
  comm::run_rank_threads(1, [&](Group& group) {
    Writer writer(group, {.folder = folder.path()});
    writer.save(state, 5);
    state.tensors[0].pieces[0].data.zero_();
    writer.finish();
  });
  State read = replicated_state(2);
  load_alone(checkpoint_format::checkpoint_path(folder.path(), 5), read);
  EXPECT_TRUE(read.tensors[0].pieces[0].data.equal(replicated_state(1).tensors[0].pieces[0].data));
}

TEST(Checkpoint, FilesOfTheModelAreCheckedToo) {
  const TempFolder folder;
  int calls = 0;
  comm::run_rank_threads(2, [&](Group& group) {
    const auto write = [&](const std::filesystem::path& checkpoint) {
      write_file_atomic(checkpoint / "vocab.txt", "a\nb\n");
      if (++calls == 2) throw IoError("no second vocabulary");
      make_folders(checkpoint / "words");
      write_file_atomic(checkpoint / "words/tokenizer.json", "{}");
    };
    Writer writer(group, {.folder = folder.path(), .write_companions = write});
    for (const int step : {5, 6}) {
      writer.save(replicated_state(1, comm::holders_of(group)), step);
      EXPECT_EQ(writer.finish(), "");
    }
  });
  EXPECT_EQ(calls, 2) << "rank 0 writes them";
  const auto first = checkpoint_format::checkpoint_path(folder.path(), 5),
             second = checkpoint_format::checkpoint_path(folder.path(), 6);
  EXPECT_EQ(checkpoint_format::read_manifest(first).files.size(), 4U);
  checkpoint_format::verify(first);
  State state = replicated_state(2);
  load_alone(first, state);
  EXPECT_TRUE(state.tensors[0].pieces[0].data.equal(replicated_state(1).tensors[0].pieces[0].data));
  write_file_atomic(first / "words/tokenizer.json", "[]");
  EXPECT_THAT([&] { checkpoint_format::verify(first); },
              testing::ThrowsMessage<DataError>(HasSubstr("words/tokenizer.json")));
  checkpoint_format::verify(second);
  EXPECT_FALSE(std::filesystem::exists(second / "vocab.txt")) << "their writing failed";
}

TEST(Checkpoint, OldCheckpointsAreRemovedAfterACommit) {
  const TempFolder folder;
  comm::run_rank_threads(2, [&](Group& group) {
    Writer writer(group, {.folder = folder.path(), .retention = {.last = 2}});
    for (int step = 1; step <= 4; ++step) writer.save(replicated_state(step, comm::holders_of(group)), step);
  });
  const auto left = checkpoint_format::list_checkpoints(folder.path());
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].step, 3);
  checkpoint_format::verify(left[1].path);
}

TEST(Checkpoint, LaterCheckpointsDoNotDisplaceTheOneJustCommitted) {
  const TempFolder folder;
  comm::run_rank_threads(1, [&](Group& group) {
    Writer writer(group, {.folder = folder.path(), .retention = {.last = 1}});
    for (const int step : {8, 3}) writer.save(replicated_state(step), step);
    EXPECT_EQ(writer.finish(), "");
  });
  const auto left = checkpoint_format::list_checkpoints(folder.path());
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].step, 3);
}

// A folder that one rank cannot write to.
TEST(Checkpoint, AFailureOfOneRankReachesAllAndCommitsNothing) {
  const TempFolder folder;
  comm::run_rank_threads(2, [&](Group& group) {
    Writer writer(group, {.folder = folder.path()});
    writer.save(replicated_state(1, comm::holders_of(group)), 1);
    EXPECT_EQ(writer.finish(), "");
    if (group.rank() == 0) {  // at the path that rank 1 writes to
      make_folders(checkpoint_format::partial_path(folder.path(), 2) / "rank-00001.safetensors" /
                   "in the way");
    }
    group.barrier();
    writer.save(replicated_state(2, comm::holders_of(group)), 2);
    EXPECT_THAT(writer.finish(), AllOf(HasSubstr("rank 1: "), HasSubstr("rank-00001.safetensors")));
    writer.save(replicated_state(3, comm::holders_of(group)), 3);
    EXPECT_EQ(writer.finish(), "");
  });
  const auto left = checkpoint_format::list_checkpoints(folder.path());
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].step, 1);
  EXPECT_EQ(left[1].step, 3);
}

TEST(Checkpoint, AFailedCreationOfTheFolderIsRetried) {
  const TempFolder temporary;
  const auto folder = temporary.path() / "checkpoints";
  comm::run_rank_threads(2, [&](Group& group) {
    std::optional<file_faults::Injection> full;  // of the process: for both ranks
    if (group.rank() == 0) full.emplace(file_faults::Fault{.call = 1, .error = ENOSPC, .sticky = true});
    group.barrier();
    Writer writer(group, {.folder = folder});
    writer.save(replicated_state(1, comm::holders_of(group)), 1);
    EXPECT_THAT(writer.finish(), AllOf(HasSubstr("rank 0: cannot create the folder " + folder.string()),
                                       HasSubstr("No space left")));
    group.barrier();
    full.reset();
    group.barrier();
    writer.save(replicated_state(2, comm::holders_of(group)), 2);
    EXPECT_EQ(writer.finish(), "");
  });
  EXPECT_EQ(checkpoint_format::newest_good(folder).value().step, 2);
}

TEST(Checkpoint, AnotherModelIsNamed) {
  const TempFolder folder;
  save(folder.path(), 1, on_each_rank);
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  const auto with = [&](const std::function<void(State&)>& change) {
    State state = replicated_state(1);
    change(state);
    return load_error(path, state);
  };
  EXPECT_THAT(with([](State& s) {
                s.tensors[0].shape = {4, 30};
              }),
              HasSubstr("tensor model.w is [30, 4] there and [4, 30] here"));
  EXPECT_THAT(with([](State& s) { s.tensors[1].dtype = at::kDouble; }),
              HasSubstr("tensor model.b is F32 there and F64 here: set precision as it was"));
  EXPECT_THAT(with([](State& s) { s.tensors[1].name = "model.c"; }), HasSubstr("it has no tensor model.c"));
  EXPECT_THAT(with([](State& s) { s.tensors.pop_back(); }),
              HasSubstr("it has a tensor model.none that this run has not"));
}

TEST(Checkpoint, DamageIsFoundWhileLoading) {
  const TempFolder folder;
  save(folder.path(), 1, on_each_rank);
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  const auto file = path / "rank-00000.safetensors";
  const std::string whole = read_file(file);
  std::string bytes = whole;
  bytes[bytes.size() - 100] ^= 1;
  write_file_atomic(file, bytes);
  EXPECT_THAT(load_error(path, replicated_state(1)),
              AllOf(HasSubstr(file.string()), HasSubstr("tensor model.w is damaged")));
  write_file_atomic(file, whole.substr(0, whole.size() - 8));
  EXPECT_THAT(load_error(path, replicated_state(1)), HasSubstr("truncated"));
}

// After a failure of any write of a save, the newest good checkpoint loads, and it is one that was saved.
TEST(Checkpoint, AFaultAtAnyWriteLeavesAValidCheckpoint) {
  struct Kind {
    file_faults::Effect effect;
    int error;
    bool sticky;
  };
  using file_faults::Effect;
  for (const Kind kind : {Kind{Effect::error, ENOSPC, true}, Kind{Effect::error, EIO, false},
                          Kind{Effect::short_write, 0, false}}) {
    int64_t faults = 0;
    for (int64_t call = 1;; ++call) {
      const TempFolder folder;
      bool hit = false;
      comm::run_rank_threads(1, [&](Group& group) {
        Writer writer(group, {.folder = folder.path(), .background = false, .retention = {.last = 1}});
        writer.save(replicated_state(1), 1);
        file_faults::Injection injection(
            {.call = call, .effect = kind.effect, .error = kind.error, .sticky = kind.sticky});
        writer.save(replicated_state(2), 2);
        hit = !injection.hit().empty();
        const bool saved = writer.finish().empty();
        const auto found = checkpoint_format::newest_good(folder.path());
        ASSERT_TRUE(found) << injection.hit();
        if (saved) {
          EXPECT_EQ(found->step, 2) << injection.hit();
        }
        State state = replicated_state(3);
        load(group, found->path, state);
        EXPECT_TRUE(state.tensors[0].pieces[0].data.equal(
            replicated_state(static_cast<int>(found->step)).tensors[0].pieces[0].data));
      });
      if (!hit) break;
      ++faults;
    }
    EXPECT_GT(faults, 10) << "too few faults were injected";
  }
}

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
