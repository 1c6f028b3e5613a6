#include "stretto/launch/diagnosis/diagnosis.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "stretto/base/rank_list.h"
#include "stretto/base/strings.h"

namespace stretto::launch {
namespace {

constexpr const char* stopped = "T";
constexpr double start_up = 60;  // seconds that a rank may need to load its libraries and to join

const FlightCall* find_call(const RankRecord& rank, const FlightCall& like) {
  for (const FlightCall& call : rank.last_calls) {
    if (call.group_id == like.group_id && call.sequence == like.sequence) return &call;
  }
  return nullptr;
}

// Whether the rank is a member of the group of `call` and has not reached that call, as far as the record
// shows.
bool is_behind(const RankRecord& rank, const FlightCall& call, size_t ranks) {
  bool member = call.group_size == static_cast<int>(ranks);
  for (const FlightCall& own : rank.last_calls) {
    if (own.group_id != call.group_id) continue;
    if (own.sequence >= call.sequence) return false;
    member = true;
  }
  return rank.recorded && member;
}

const std::string& host_of(const FlightRecord& record, const RankRecord& rank) {
  return rank.host.empty() ? record.host : rank.host;
}

struct Difference {
  double ago;
  std::string text;
};

// Compares one call of a rank with the calls of all others.
std::optional<Difference> compare(const FlightRecord& record, const RankRecord& first,
                                  const FlightCall& call) {
  std::vector<int> missing;
  for (const RankRecord& other : record.ranks) {
    const FlightCall* theirs = find_call(other, call);
    if (theirs != nullptr && theirs->call() != call.call()) {
      return Difference{call.started_ago,
                        fmt::format("rank {} called {}, rank {} called {}, in group {}", other.rank,
                                    theirs->call(), first.rank, call.call(), call.group)};
    }
    if (theirs == nullptr && is_behind(other, call, record.ranks.size())) missing.push_back(other.rank);
  }
  if (missing.empty()) return std::nullopt;
  return Difference{call.started_ago,
                    fmt::format("{} {} not called {} of group {}, which rank {} has", rank_list(missing),
                                missing.size() == 1 ? "has" : "have", call.call(), call.group, first.rank)};
}

const FlightCall* oldest_wait(const RankRecord& rank) {
  for (const FlightCall& call : rank.last_calls) {
    if (call.waits()) return &call;
  }
  return nullptr;
}

std::string in_group(const FlightCall& call) {
  return fmt::format("{} of group {}", call.call(), call.group);
}

std::string not_moved(const FlightRecord& record, const RankRecord& rank) {
  return fmt::format("rank {} on {} has made no progress for {:.1f} s: ", rank.rank, host_of(record, rank),
                     rank.progress_ago);
}

std::string blame_stopped(const RankRecord& rank) {
  const FlightCall* call = oldest_wait(rank);
  return state_text(rank.state) + (call == nullptr ? "" : " in " + in_group(*call));
}

// "rank 1 on node7 has made no progress for 5.0 s: it is running (state R) and has not called all_reduce [8]
// float32 #17 of group world; its last call was all_reduce [8] float32 #16".
std::string blame_missing(const FlightRecord& record, const RankRecord& rank, const FlightCall& call) {
  if (rank.state.empty()) {
    return fmt::format("rank {}{} {} and has not called {} of group {}", rank.rank,
                       rank.host.empty() ? "" : " on " + rank.host, rank.ending, call.call(), call.group);
  }
  std::string text = not_moved(record, rank) + fmt::format("it is {} and has not called {} of group {}",
                                                           state_text(rank.state), call.call(), call.group);
  if (!rank.last_calls.empty()) text += fmt::format("; its last call was {}", rank.last_calls.back().call());
  return text;
}

// The message about a rank that has kept no record so far.
std::string not_joined(const FlightRecord& record, const RankRecord& rank) {
  if (rank.state == stopped)
    return not_moved(record, rank) + state_text(rank.state) + " before it joined the job";
  return fmt::format("rank {} on {} has not joined the job {:.1f} s after its start: it is {}", rank.rank,
                     host_of(record, rank), rank.progress_ago, state_text(rank.state));
}

// "ranks 0, 1 on node7 have not started /mnt/bin/prog in 66.0 s: sleeping (state S); check ...", one message
// for all ranks with the same cause.
std::vector<std::string> not_started(const FlightRecord& record, const std::vector<const RankRecord*>& late) {
  std::map<std::string, std::vector<const RankRecord*>> by_cause;
  for (const RankRecord* rank : late)
    by_cause[fmt::format("{} {} {}", host_of(record, *rank), rank->state, rank->program)].push_back(rank);
  std::vector<std::string> texts;
  for (const auto& [key, ranks] : by_cause) {
    const RankRecord& first = *ranks.front();
    std::vector<int> numbers;
    for (const RankRecord* rank : ranks) numbers.push_back(rank->rank);
    const std::string advice =
        first.state == stopped
            ? "it was stopped before the program ran; find out what sends SIGSTOP, and restart the job"
            : fmt::format("check that the file and its disk can be read (head -c 1 {})", first.program);
    texts.push_back(fmt::format("{} on {} {} not started {} in {:.1f} s: {}; {}", rank_list(numbers),
                                host_of(record, first), numbers.size() == 1 ? "has" : "have", first.program,
                                first.progress_ago, state_text(first.state), advice));
  }
  return texts;
}

std::string call_line(const FlightCall& call) {
  std::string text = fmt::format("  {} of group {}, {}: ", call.call(), call.group,
                                 human_bytes(static_cast<double>(call.bytes)));
  if (call.ended_ago) {
    text += fmt::format("{} after {}, {} before", call.failed ? "failed" : "done",
                        human_duration(call.started_ago - *call.ended_ago), human_duration(*call.ended_ago));
  } else if (call.waiting_for) {
    text += fmt::format("waited for {}", human_duration(*call.waiting_for));
  } else {
    text += fmt::format("under way for {}", human_duration(call.started_ago));
  }
  return text + "\n";
}

std::string rank_report(const RankRecord& rank, size_t calls) {
  std::string text = rank.host.empty()
                         ? fmt::format("rank {} (process {}) ", rank.rank, rank.pid)
                         : fmt::format("rank {} on {} (process {}) ", rank.rank, rank.host, rank.pid);
  text += rank.state.empty() ? rank.ending : "was " + state_text(rank.state);
  if (!rank.recorded) return text + "; it kept no record\n";
  text += fmt::format("; {} collectives, the last sign of progress {} before\n", rank.calls,
                      human_duration(rank.progress_ago));
  const size_t skipped = rank.last_calls.size() - std::min(calls, rank.last_calls.size());
  for (size_t i = skipped; i < rank.last_calls.size(); ++i) text += call_line(rank.last_calls[i]);
  return text;
}

}  // namespace

std::string state_text(const std::string& state) {
  const std::map<std::string, std::string> words = {{"R", "running"},
                                                    {"S", "sleeping"},
                                                    {"D", "waiting for a disk or a device"},
                                                    {"T", "stopped by a signal"},
                                                    {"t", "stopped by a debugger"},
                                                    {"Z", "ended"}};
  const auto found = words.find(state);
  return fmt::format("{} (state {})", found == words.end() ? "alive" : found->second, state);
}

std::vector<std::string> waits(const FlightRecord& record) {
  std::map<std::string, std::vector<int>> by_call;
  for (const RankRecord& rank : record.ranks) {
    const FlightCall* call = rank.state.empty() || rank.state == stopped ? nullptr : oldest_wait(rank);
    if (call != nullptr) by_call[in_group(*call)].push_back(rank.rank);
  }
  std::vector<std::string> clauses;
  for (const auto& [call, ranks] : by_call) {
    clauses.push_back(
        fmt::format("{} {} in {}", rank_list(ranks), ranks.size() == 1 ? "waits" : "wait", call));
  }
  return clauses;
}

std::vector<std::string> differences(const FlightRecord& record) {
  // The earliest difference of each group, over all ranks.
  std::map<std::string, std::pair<uint64_t, Difference>> found;
  for (const RankRecord& rank : record.ranks) {
    for (const FlightCall& call : rank.last_calls) {
      if (call.group_id == "0") continue;
      const auto known = found.find(call.group_id);
      if (known != found.end() && known->second.first <= call.sequence) continue;
      if (auto difference = compare(record, rank, call)) {
        found.insert_or_assign(call.group_id, std::pair(call.sequence, std::move(*difference)));
      }
    }
  }
  std::vector<Difference> ordered;
  for (auto& [group, entry] : found) ordered.push_back(std::move(entry.second));
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.ago > b.ago; });
  std::vector<std::string> texts;
  for (Difference& difference : ordered) texts.push_back(std::move(difference.text));
  return texts;
}

std::optional<std::string> diagnose_hang(const FlightRecord& record, double limit, bool own_program) {
  const bool judged = own_program || std::ranges::any_of(record.ranks, &RankRecord::recorded);
  bool hangs = false;
  std::vector<std::string> clauses;
  std::vector<const RankRecord*> late;  // ranks that have not started their programs
  const FlightCall* longest = nullptr;
  for (const RankRecord& rank : record.ranks) {
    if (rank.state.empty()) continue;
    if (!rank.recorded) {
      const double patience = rank.state == stopped ? limit : std::max(limit, start_up);
      const bool starting = !rank.program.empty();
      if ((!judged && !starting) || rank.progress_ago <= patience) continue;
      starting ? late.push_back(&rank) : clauses.push_back(not_joined(record, rank));
      hangs = true;
    } else if (rank.state == stopped) {
      clauses.push_back(not_moved(record, rank) + blame_stopped(rank));
      hangs |= rank.progress_ago > limit;
    }
    const FlightCall* call = oldest_wait(rank);
    if (call != nullptr && (longest == nullptr || *call->waiting_for > *longest->waiting_for)) longest = call;
  }
  hangs |= longest != nullptr && *longest->waiting_for > limit;
  if (!hangs) return std::nullopt;
  std::ranges::move(not_started(record, late), std::back_inserter(clauses));

  if (clauses.empty()) {
    for (const RankRecord& rank : record.ranks) {
      const FlightCall* theirs = find_call(rank, *longest);
      if (theirs != nullptr && theirs->call() != longest->call()) {
        clauses.push_back(fmt::format("rank {} on {} called {} where others called {}", rank.rank,
                                      host_of(record, rank), theirs->call(), longest->call()));
      } else if (theirs == nullptr && is_behind(rank, *longest, record.ranks.size())) {
        clauses.push_back(blame_missing(record, rank, *longest));
      }
    }
  }
  if (clauses.empty()) {
    const bool several_hosts = std::ranges::any_of(
        record.ranks, [&](const auto& rank) { return host_of(record, rank) != record.host; });
    clauses.push_back(fmt::format("no rank{} has made progress for {:.1f} s",
                                  several_hosts ? "" : " on " + record.host, *longest->waiting_for));
  }
  constexpr size_t blamed = 8;
  if (clauses.size() > blamed) clauses.resize(blamed);
  for (std::string& clause : waits(record)) clauses.push_back(std::move(clause));
  return fmt::format("{}", fmt::join(clauses, "; "));
}

std::optional<std::string> long_work(const FlightRecord& record, double limit) {
  for (const RankRecord& rank : record.ranks) {
    for (const FlightCall& call : rank.last_calls) {
      const bool under_way = call.operation == "work" && !call.ended_ago && !rank.state.empty();
      if (!under_way || call.started_ago <= limit) continue;
      return fmt::format("rank {} has been {} for {:.1f} s; other ranks may wait for it", rank.rank,
                         call.shape, call.started_ago);
    }
  }
  return std::nullopt;
}

std::string report(const FlightRecord& record, size_t calls) {
  std::string text = fmt::format("failed on {} at {} UTC", record.host, record.time);
  if (record.max_restarts > 0) {
    text += fmt::format(" (after {} of {} restarts)", record.restart_count, record.max_restarts);
  }
  text += fmt::format(": {}\n", record.reason);
  for (const std::string& difference : differences(record))
    text += fmt::format("first difference: {}\n", difference);
  for (const RankRecord& rank : record.ranks) text += "\n" + rank_report(rank, calls);
  return text;
}

}  // namespace stretto::launch
