#include "stretto/launch/diagnosis/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/launch/diagnosis/hang_watch.h"

namespace stretto::launch {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

FlightCall all_reduce(uint64_t sequence, double started_ago) {
  return {.sequence = sequence,
          .group_id = "1f",
          .group = "world",
          .group_size = 2,
          .operation = "all_reduce",
          .shape = "[1024]",
          .dtype = "float32",
          .bytes = 4096,
          .started_ago = started_ago,
          .waiting_for = 0.001,
          .ended_ago = started_ago - 0.001};
}

FlightCall waiting(FlightCall call) {
  call.waiting_for = call.started_ago;
  call.ended_ago.reset();
  return call;
}

RankRecord rank_of(int rank, std::vector<FlightCall> calls) {
  const double progress = calls.empty() ? 9 : calls.back().ended_ago.value_or(calls.back().started_ago);
  return {.rank = rank,
          .pid = 100 + rank,
          .recorded = true,
          .state = "S",
          .progress_ago = progress,
          .calls = calls.size(),
          .last_calls = std::move(calls)};
}

// Rank 0 has waited for five seconds in #17, which rank 1 has not reached.
FlightRecord one_waits() {
  FlightRecord record{.host = "node7", .time = "2026-01-31 12:00:00", .reason = "why"};
  record.ranks = {rank_of(0, {all_reduce(16, 5.2), waiting(all_reduce(17, 5.1))}),
                  rank_of(1, {all_reduce(16, 5.2)})};
  return record;
}

constexpr const char* call_17 = "all_reduce [1024] float32 #17 of group world";

TEST(Hang, AStoppedRankIsNamed) {
  FlightRecord record = one_waits();
  record.ranks[1].state = "T";
  const std::string waiter = std::string("rank 0 waits in ") + call_17;
  EXPECT_THAT(
      diagnose_hang(record, 5).value(),
      AllOf(has_all("rank 1 on node7", "5.2 s", "(state T)", waiter), Not(HasSubstr("(state T) in"))));
  EXPECT_EQ(diagnose_hang(record, 6), std::nullopt);
  FlightRecord inside = record;
  inside.ranks[1].last_calls.push_back(waiting(all_reduce(17, 5.1)));
  EXPECT_THAT(diagnose_hang(inside, 5).value(),
              has_all("rank 1 on node7", "5.2 s", std::string("(state T) in ") + call_17, waiter));
  record.ranks[0].last_calls.pop_back();  // the rank is alone
  EXPECT_THAT(diagnose_hang(record, 5).value(),
              AllOf(has_all("rank 1 on node7", "5.2 s", "(state T)"), Not(HasSubstr("rank 0"))));
}

TEST(Hang, TheRankThatOthersWaitForIsNamed) {
  FlightRecord record = one_waits();
  record.ranks[1].state = "R";
  EXPECT_THAT(
      diagnose_hang(record, 5).value(),
      has_all("rank 1 on node7", "5.2 s", "(state R)", std::string("not called ") + call_17,
              "last call was all_reduce [1024] float32 #16", std::string("rank 0 waits in ") + call_17));
  record.ranks[1].state = "";
  record.ranks[1].ending = "ended with exit code 0";
  EXPECT_THAT(diagnose_hang(record, 5).value(),
              has_all("rank 1 ended with exit code 0", std::string("not called ") + call_17));
}

TEST(Hang, DifferentCallsAreNamed) {
  FlightRecord record = one_waits();
  FlightCall other = waiting(all_reduce(17, 5.1));
  other.operation = "all_gather";
  record.ranks[1].last_calls.push_back(other);
  EXPECT_THAT(diagnose_hang(record, 5).value(),
              has_all("rank 1 on node7 called all_gather [1024] float32 #17", "others called all_reduce",
                      "rank 1 waits in all_gather [1024] float32 #17"));
}

TEST(Hang, NoRankIsBlamedForALostMessage) {
  FlightRecord record = one_waits();
  record.ranks[1].last_calls.push_back(waiting(all_reduce(17, 5.05)));
  EXPECT_THAT(diagnose_hang(record, 5).value(),
              has_all("no rank on node7", "5.1 s", std::string("ranks 0, 1 wait in ") + call_17));
}

TEST(Hang, ComputingIsNotAHang) {
  FlightRecord record = one_waits();
  record.ranks[0].last_calls.back().waiting_for.reset();  // the call has begun, and the rank computes
  EXPECT_EQ(diagnose_hang(record, 1), std::nullopt);
  record.ranks[0].last_calls.pop_back();
  EXPECT_EQ(diagnose_hang(record, 1), std::nullopt);
}

TEST(Hang, ProgramsWithoutARecordAreNotJudged) {
  FlightRecord record = one_waits();
  for (RankRecord& rank : record.ranks) rank = {.rank = rank.rank, .state = "T", .progress_ago = 1000};
  EXPECT_EQ(diagnose_hang(record, 5), std::nullopt);
}

TEST(Hang, ARankThatHasNotJoinedIsNamedIfTheProgramKeepsRecords) {
  FlightRecord record = one_waits();
  record.ranks[0].last_calls.clear();
  record.ranks[1] = {.rank = 1, .state = "T", .progress_ago = 6};
  EXPECT_EQ(diagnose_hang(record, 7), std::nullopt);
  EXPECT_THAT(diagnose_hang(record, 5).value(),
              has_all("rank 1 on node7", "6.0 s", "(state T) before it joined"));
  record.ranks[1].state = "D";
  EXPECT_EQ(diagnose_hang(record, 5), std::nullopt);
  record.ranks[1].progress_ago = 301;
  EXPECT_EQ(diagnose_hang(record, 302), std::nullopt);
  EXPECT_THAT(diagnose_hang(record, 300), ::testing::Optional(has_all("rank 1 on node7", "301.0 s")));
  record.ranks[1].progress_ago = 59;
  EXPECT_EQ(diagnose_hang(record, 5), std::nullopt) << "it may still load its libraries";
  record.ranks[1].progress_ago = 66;
  EXPECT_THAT(diagnose_hang(record, 5).value(),
              has_all("rank 1 on node7", "not joined", "66.0 s", "disk or a device (state D)"));
  record.ranks.erase(record.ranks.begin());  // the only rank
  EXPECT_EQ(diagnose_hang(record, 5), std::nullopt);
  EXPECT_THAT(diagnose_hang(record, 5, /*own_program=*/true),
              ::testing::Optional(HasSubstr("rank 1 on node7")));
}

// This holds for any program: before exec, its process runs the launcher's code.
TEST(Hang, RanksWhoseProgramsDoNotStartAreNamedTogether) {
  FlightRecord record{.host = "node7"};
  for (const int rank : {0, 1, 2})
    record.ranks.push_back({.rank = rank, .state = "D", .program = "/mnt/train", .progress_ago = 66});
  EXPECT_THAT(diagnose_hang(record, 5).value(),
              has_all("ranks 0, 1, 2 on node7", "not started /mnt/train", "66.0 s",
                      "disk or a device (state D)", "(head -c 1 /mnt/train)"));
  EXPECT_EQ(diagnose_hang(record, 70), std::nullopt);
  record.ranks[1].state = "T";
  record.ranks[1].progress_ago = 7;
  EXPECT_THAT(diagnose_hang(record, 5).value(), has_all("ranks 0, 2 on node7", "66.0 s", "rank 1 on node7",
                                                        "7.0 s", "(state T)", "what sends SIGSTOP"));
  const FlightRecord read = parse_flight_record(to_json(record), "record");
  EXPECT_EQ(diagnose_hang(read, 5), diagnose_hang(record, 5));
}

TEST(Hang, LongWorkOfRankZeroIsNotAHangAndIsNamed) {
  FlightRecord record = one_waits();
  record.ranks[1].last_calls.clear();
  record.ranks[0].last_calls = {{.operation = "work", .shape = "tokenising", .started_ago = 400}};
  record.ranks[0].progress_ago = 400;
  EXPECT_EQ(diagnose_hang(record, 5), std::nullopt);
  EXPECT_THAT(long_work(record, 300).value(), has_all("rank 0", "tokenising", "400.0 s"));
  EXPECT_EQ(long_work(record, 500), std::nullopt);
  record.ranks[0].last_calls[0].ended_ago = 1;
  EXPECT_EQ(long_work(record, 300), std::nullopt);
  record.ranks[0].last_calls[0].ended_ago.reset();
  record.ranks[0].state = "T";
  EXPECT_NE(diagnose_hang(record, 5), std::nullopt);
}

TEST(HangWatch, SuspectsOnlyStalledRanksOfARunningLauncher) {
  const cluster::FlightBoard board(1);
  const auto recorder = cluster::FlightRecorder::open(board.path(), 0);
  HangWatch watch(board, std::chrono::milliseconds(1000));
  const auto start = HangWatch::Clock::now();
  const auto at = [&](int milliseconds) { return start + std::chrono::milliseconds(milliseconds); };
  for (int time = 200; time <= 800; time += 200) EXPECT_FALSE(watch.suspects(at(time)));
  for (int time = 1200; time <= 4000; time += 200) EXPECT_TRUE(watch.suspects(at(time)));
  EXPECT_TRUE(watch.suspects(at(4200)));
  EXPECT_FALSE(watch.suspects(at(4201))) << "not before the next look";
  EXPECT_FALSE(watch.suspects(at(60'000))) << "the launcher itself was stopped";
  EXPECT_FALSE(watch.suspects(at(60'900)));
  EXPECT_TRUE(watch.suspects(at(61'100)));
  EXPECT_EQ(HangWatch(board, std::chrono::milliseconds(0)).next_look(), HangWatch::Clock::time_point::max());
}

TEST(Differences, TheFirstOfEachGroupIsReported) {
  FlightRecord record = one_waits();
  EXPECT_THAT(differences(record),
              ElementsAre(has_all("rank 1", std::string("not called ") + call_17, "rank 0 has")));
  FlightCall gather = waiting(all_reduce(17, 5.1)), reduce = gather;
  gather.operation = "all_gather", gather.shape = "[4]";
  reduce.shape = "[8]";
  record.ranks[0].last_calls = {all_reduce(16, 5.2), reduce, all_reduce(18, 1)};
  record.ranks[1].last_calls = {all_reduce(16, 5.2), gather};
  EXPECT_THAT(differences(record),
              ElementsAre(has_all("rank 1 called all_gather [4] float32 #17",
                                  "rank 0 called all_reduce [8] float32 #17", "group world")));
}

TEST(Differences, CallsThatHaveLeftTheRecordAreNotADifference) {
  FlightRecord record = one_waits();
  record.ranks[0].last_calls = {all_reduce(3, 9)};
  record.ranks[1].last_calls = {all_reduce(4, 8)};
  record.ranks[0].last_calls.push_back(all_reduce(4, 8));
  EXPECT_THAT(differences(record), IsEmpty());
}

TEST(Differences, IgnoresMessagesAndGroupsOfOtherRanks) {
  FlightRecord record = one_waits();
  FlightCall message = all_reduce(0, 3), single = all_reduce(0, 3);
  message.group_id = "0";
  single.group_id = "2a", single.group_size = 1;
  record.ranks[0].last_calls = {message, single};
  record.ranks[1].last_calls = {};
  EXPECT_THAT(differences(record), IsEmpty());
}

TEST(Report, NamesTheFailedRankAndTheLastCallsOfEach) {
  FlightRecord record = one_waits();
  record.reason = "rank 1 (process 101) was killed by SIGKILL (Killed)";
  record.max_restarts = 3;
  record.ranks[1].state = "";
  record.ranks[1].ending = "was killed by SIGKILL (Killed)";
  const std::string text = report(record, 1);
  EXPECT_THAT(text, AllOf(has_all("failed on node7 at 2026-01-31 12:00:00 UTC (after 0 of 3 restarts): " +
                                      record.reason,
                                  std::string("first difference: rank 1 has not called ") + call_17),
                          HasSubstr(fmt::format("5.10s before\n  {}, 4.0 KiB: waited for 5.10s\n", call_17)),
                          has_all("rank 0 (process 100) was sleeping (state S); 2 collectives",
                                  "rank 1 (process 101) was killed by SIGKILL (Killed); 1 collectives",
                                  "#16 of group world, 4.0 KiB: done after 0.00s, 5.20s before")));
  EXPECT_THAT(report(record, 2), HasSubstr("#16 of group world, 4.0 KiB: done after"));
}

class RecordFile : public ::testing::Test {
 protected:
  std::string refusal(const std::string& content) {
    write_file_atomic(path_, content);
    try {
      read_flight_record(path_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no refusal";
  }
  TempFolder folder_;
  std::string path_ = folder_.path() / "flight_record.json";
};

TEST_F(RecordFile, IsReadBackEqual) {
  FlightRecord record = one_waits();
  record.ranks[0].last_calls[0].failed = true;
  record.ranks[0].last_calls[1].group = "\xff odd \"name\"";
  write_file_atomic(path_, to_json(record));
  const FlightRecord read = read_flight_record(path_);
  EXPECT_EQ(to_json(read), to_json(record));
  EXPECT_EQ(report(read, 5).substr(0, 40), report(record, 5).substr(0, 40));
  EXPECT_EQ(diagnose_hang(read, 5).has_value(), true);
}

TEST_F(RecordFile, EarlierVersionsHaveFewerKeys) {
  FlightRecord record = one_waits();
  const std::string now = to_json(record);
  auto earlier = nlohmann::json::parse(now);
  for (auto& rank : earlier["ranks"]) {
    for (const char* key : {"host", "program"}) EXPECT_EQ(rank.erase(key), 1u) << key;
    for (auto& call : rank["last_calls"]) {
      for (const char* key : {"waiting_for", "ended_ago"})
        if (call[key].is_null()) call.erase(key);
      EXPECT_EQ(call.erase("failed"), 1u);
    }
  }
  EXPECT_EQ(to_json(parse_flight_record(earlier.dump(), "earlier")), now);
  earlier["ranks"][1].erase("pid");
  EXPECT_THAT(refusal(earlier.dump()), AllOf(HasSubstr("rank 1: the file is broken"), HasSubstr("'pid'")));
}

TEST_F(RecordFile, MalformedFilesAreRefused) {
  const std::string good = to_json(one_waits());
  EXPECT_THAT(refusal(good.substr(0, good.size() / 2)), HasSubstr(path_));
  EXPECT_THAT(refusal(""), HasSubstr(path_));
  EXPECT_THAT(refusal("[]"), HasSubstr(path_ + ": the file is broken, or of another version of stretto: "));
  EXPECT_THAT(refusal("{}"), HasSubstr("key 'format' not found"));
  EXPECT_THAT(refusal("{\"format\": \"stretto flight record 2\"}"),
              HasSubstr("its format is \"stretto flight record 2\""));
  std::string bad = good;
  bad.replace(bad.find("4096"), 4, "\"x\"");
  EXPECT_THAT(refusal(bad), AllOf(HasSubstr("rank 0: call 0: the file is broken"),
                                  HasSubstr("type must be number, but is string")));
  bad = good;
  bad.replace(bad.find("\"last_calls\""), 12, "\"lost_calls\"");
  EXPECT_THAT(refusal(bad),
              AllOf(HasSubstr("rank 0: the file is broken"), HasSubstr("key 'last_calls' not found")));
  // Removing any one byte gives a record or DataError, never any other result.
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged.erase(i, 1);
    try {
      EXPECT_FALSE(report(parse_flight_record(damaged, path_), 5).empty());
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path_));
    }
  }
}

}  // namespace
}  // namespace stretto::launch
