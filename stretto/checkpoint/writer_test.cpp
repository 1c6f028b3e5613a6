#include "stretto/checkpoint/writer.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/checkpoint_fixture.h"

namespace stretto::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  EXPECT_THAT(message_of<DataError>([&] { checkpoint_format::verify(first); }),
              HasSubstr("words/tokenizer.json"));
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

}  // namespace
}  // namespace stretto::checkpoint
