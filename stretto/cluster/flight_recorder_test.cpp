#include "stretto/cluster/flight_recorder.h"

#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::cluster {
namespace {

using ::testing::HasSubstr;

Collective all_reduce(uint64_t sequence) {
  return {.sequence = sequence,
          .group_id = 7,
          .group_rank = 1,
          .group_size = 2,
          .operation = "all_reduce",
          .shape = "[1024]",
          .dtype = "float32",
          .group = "world",
          .bytes = 4096};
}

TEST(FlightRecorder, TheLauncherSeesTheProgressOfARank) {
  const FlightBoard board(2);
  EXPECT_EQ(board.pid(1), 0);
  const auto recorder = FlightRecorder::open(board.path(), 1);
  EXPECT_EQ(board.pid(1), ::getpid());
  const int64_t at_start = board.progress(1);
  EXPECT_NEAR(static_cast<double>(at_start), static_cast<double>(record_time()), 10e9);

  const auto done = recorder->start(all_reduce(0)), failed = recorder->start(all_reduce(1)),
             waiting = recorder->start(all_reduce(2)), begun = recorder->start(all_reduce(3));
  done.waiting(), done.ended(true), failed.ended(false), waiting.waiting();
  EXPECT_GT(board.progress(1), at_start);
  const RankFlight flight = board.read(1);
  EXPECT_EQ(flight.calls, 4u);
  ASSERT_EQ(flight.collectives.size(), 4u);
  const Collective& call = flight.collectives[2].call;
  EXPECT_EQ(call.sequence, 2u);
  EXPECT_EQ(call.group_id, 7u);
  EXPECT_EQ(call.group_rank, 1);
  EXPECT_EQ(call.group_size, 2);
  EXPECT_EQ(call.operation + call.shape + call.dtype + call.group, "all_reduce[1024]float32world");
  EXPECT_EQ(call.bytes, 4096);
  const auto& all = flight.collectives;
  EXPECT_TRUE(all[0].ended >= all[0].waiting_since && all[0].waiting_since >= all[0].started &&
              !all[0].failed);
  EXPECT_TRUE(all[1].ended > 0 && all[1].failed);
  EXPECT_TRUE(all[2].waiting_since > 0 && all[2].ended == 0);
  EXPECT_TRUE(all[3].waiting_since == 0 && all[3].ended == 0);
  EXPECT_TRUE(board.read(0).collectives.empty());
}

TEST(FlightRecorder, TheLauncherSeesWhetherARunTakesSteps) {
  const FlightBoard board(1);
  EXPECT_FALSE(board.first_step_taken() || board.has_nothing_to_do());
  note_nothing_to_do(board.path());
  EXPECT_TRUE(board.has_nothing_to_do() && !board.first_step_taken());
  note_first_step(board.path());
  EXPECT_TRUE(board.first_step_taken());
  note_first_step("");  // without a launcher
}

TEST(FlightRecorder, TheLastTwoHundredAreKept) {
  const FlightBoard board(1);
  const auto recorder = FlightRecorder::open(board.path(), 0);
  const auto first = recorder->start(all_reduce(0));
  for (uint64_t i = 1; i < 450; ++i) recorder->start(all_reduce(i)).ended(true);
  first.ended(false);  // its slot belongs to another call by now
  const RankFlight flight = board.read(0);
  EXPECT_EQ(flight.calls, 450u);
  ASSERT_EQ(flight.collectives.size(), flight_record_length);
  EXPECT_EQ(flight.collectives.front().call.sequence, 250u);
  EXPECT_EQ(flight.collectives.back().call.sequence, 449u);
  for (const auto& collective : flight.collectives) EXPECT_FALSE(collective.failed);
}

TEST(FlightRecorder, LongTextsAreCut) {
  const FlightBoard board(1);
  Collective call = all_reduce(0);
  call.shape = std::string(100, '1');
  FlightRecorder::open(board.path(), 0)->start(call);
  EXPECT_EQ(board.read(0).collectives.at(0).call.shape, std::string(47, '1'));
}

TEST(FlightRecorder, ReadersSeeWholeRecordsWhileThreadsWrite) {
  const FlightBoard board(1);
  const auto recorder = FlightRecorder::open(board.path(), 0);
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&] {
      for (uint64_t i = 0; i < 20'000; ++i) {
        Collective call = all_reduce(i);
        call.shape = call.dtype = call.group = std::to_string(i);
        recorder->start(call).ended(true);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    for (const auto& [call, started, waiting, ended, failed] : board.read(0).collectives) {
      const std::string number = std::to_string(call.sequence);
      ASSERT_TRUE(call.shape == number && call.dtype == number && call.group == number);
    }
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(board.read(0).calls, 40'000u);
}

std::string refusal(const std::string& path, int rank) {
  try {
    FlightRecorder::open(path, rank);
  } catch (const IoError& error) {
    return error.what();
  }
  return "no refusal";
}

TEST(FlightRecorder, OtherFilesAreRefused) {
  const FlightBoard board(2);
  EXPECT_THAT(refusal(board.path(), 2), has_all("flight record of 2 ranks", "no page for rank 2"));
  EXPECT_THAT(refusal("/no/such/file", 0), HasSubstr("/no/such/file: No such file"));
  const TempFolder folder;
  const std::string path = folder.path() / "other";
  write_file_atomic(path, "short");
  EXPECT_THAT(refusal(path, 0), HasSubstr("is not a flight record"));
  write_file_atomic(path, std::string(1 << 20, 'x'));
  EXPECT_THAT(refusal(path, 0), HasSubstr("is not a flight record of this version of stretto"));
}

TEST(FlightRecorder, ARankMayWriteAnyBytes) {
  const FlightBoard board(1);
  const Fd file(::open(board.path().c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  for (const char byte : {'\x80', '\xff', '\x1b', '\0'}) {
    const std::string forged(static_cast<size_t>(status.st_size), byte);
    ASSERT_EQ(::pwrite(file.get(), forged.data(), forged.size(), 0), status.st_size);
    const RankFlight flight = board.read(0);
    EXPECT_EQ(flight.collectives.empty(), byte == '\0');
    for (const RecordedCollective& entry : flight.collectives) {
      EXPECT_EQ(entry.call.operation, std::string(16, '?'));
      EXPECT_GE(entry.ended, 0);
    }
  }
  EXPECT_THROW(FlightRecorder::open(board.path(), 0), IoError) << "nothing is left of its header";
}

TEST(FlightRecorder, WithoutOneNothingIsRecorded) {
  const FlightRecorder::Call none;
  none.waiting(), none.ended(true);
}

}  // namespace
}  // namespace stretto::cluster
