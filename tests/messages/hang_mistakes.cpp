#include "tests/messages/mistakes.h"

#include "stretto/base/error.h"
#include "stretto/launch/diagnosis/diagnosis.h"

// The launcher's reports on ranks that hang or make different calls, which a program's mistakes cause.
namespace stretto {
namespace {

using launch::FlightCall;
using launch::FlightRecord;

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
          .ended_ago = started_ago - 0.001};
}

FlightCall waiting(FlightCall call) {
  call.waiting_for = call.started_ago;
  call.ended_ago.reset();
  return call;
}

// Rank 0 has waited for five seconds in #17, which rank 1 has not called.
FlightRecord one_waits() {
  FlightRecord record{.host = "node7"};
  record.ranks = {
      {.rank = 0,
       .recorded = true,
       .state = "S",
       .progress_ago = 5.1,
       .last_calls = {all_reduce(16, 5.2), waiting(all_reduce(17, 5.1))}},
      {.rank = 1, .recorded = true, .state = "S", .progress_ago = 5.2, .last_calls = {all_reduce(16, 5.2)}}};
  return record;
}

}  // namespace

void add_hangs(Mistakes& all) {
  const auto add = [&](const char* name, const std::function<void(FlightRecord&)>& change) {
    all.push_back({std::string("hang: ") + name, [=] {
                     FlightRecord record = one_waits();
                     change(record);
                     throw DistributedError("{}", launch::diagnose_hang(record, 5).value());
                   }});
  };
  add("a rank that sleeps", [](FlightRecord&) {});
  add("a stopped rank", [](FlightRecord& record) { record.ranks[1].state = "T"; });
  add("a rank stopped in a call", [](FlightRecord& record) {
    record.ranks[1].state = "T";
    record.ranks[1].last_calls.push_back(waiting(all_reduce(17, 5.1)));
  });
  add("a rank that has ended", [](FlightRecord& record) {
    record.ranks[1].state = "";
    record.ranks[1].ending = "ended with exit code 0";
  });
  add("another call", [](FlightRecord& record) {
    record.ranks[1].last_calls.push_back(waiting(all_reduce(17, 5.1)));
    record.ranks[1].last_calls.back().operation = "all_gather";
  });
  add("all wait",
      [](FlightRecord& record) { record.ranks[1].last_calls.push_back(waiting(all_reduce(17, 5.05))); });
  add("a rank stopped before it joins", [](FlightRecord& record) {
    record.ranks[0].last_calls.clear();
    record.ranks[1] = {.rank = 1, .state = "T", .progress_ago = 6};
  });
  add("a rank that does not join", [](FlightRecord& record) {
    record.ranks[0].last_calls.clear();
    record.ranks[1] = {.rank = 1, .state = "D", .progress_ago = 66};
  });
  add("programs that do not start", [](FlightRecord& record) {
    record.ranks.clear();
    for (const int rank : {0, 1, 2})
      record.ranks.push_back({.rank = rank, .state = "D", .program = "/mnt/train", .progress_ago = 66});
  });
  add("a program stopped before it starts", [](FlightRecord& record) {
    record.ranks = {{.rank = 1, .state = "T", .program = "/mnt/train", .progress_ago = 7}};
  });
  all.push_back({"hang: long work of rank 0", [] {
                   FlightRecord record = one_waits();
                   record.ranks[0].last_calls = {
                       {.operation = "work", .shape = "tokenising", .started_ago = 400}};
                   throw DistributedError("{}", launch::long_work(record, 300).value());
                 }});
  all.push_back({"differences: a call that is missing",
                 [] { throw DistributedError("{}", launch::differences(one_waits()).at(0)); }});
  all.push_back({"differences: another call", [] {
                   FlightRecord record = one_waits();
                   FlightCall gather = record.ranks[0].last_calls.back();
                   gather.operation = "all_gather", gather.shape = "[4]";
                   record.ranks[1].last_calls.push_back(gather);
                   throw DistributedError("{}", launch::differences(record).at(0));
                 }});
}

}  // namespace stretto
