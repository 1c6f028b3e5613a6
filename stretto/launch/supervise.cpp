#include "stretto/launch/supervise.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include <fmt/chrono.h>
#include <poll.h>

#include "stretto/base/log.h"
#include "stretto/cluster/socket.h"
#include "stretto/launch/diagnosis.h"
#include "stretto/launch/hang_watch.h"

namespace stretto::launch {
namespace {

using cluster::Clock;

class Supervisor {
 public:
  Supervisor(std::vector<Rank>& ranks, const SignalGuard& signals, const cluster::FlightBoard& board,
             const SuperviseOptions& options)
      : ranks_(ranks),
        signals_(signals),
        board_(board),
        options_(options),
        hang_watch_(board, options.hang_timeout),
        endings_(ranks.size()) {}

  Outcome run() {
    while (any_alive()) {
      wait_and_carry_output();
      while (const auto signal = signals_.next()) {
        if (asks_to_end(*signal)) ask_to_end(*signal);
        if (*signal == SIGUSR1) pass_on(*signal);
      }
      for (Rank& rank : ranks_) {
        if (const auto ending = rank.process.reap()) note_end(rank, *ending);
      }
      if (kill_at_ && Clock::now() >= *kill_at_) kill_the_rest();
      if (!stopping() && hang_watch_.suspects()) look_for_a_hang();
    }
    return outcome_;
  }

 private:
  bool any_alive() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.process.alive(); });
  }

  void wait_and_carry_output() {
    std::vector<pollfd> watched = {{signals_.fd(), POLLIN, 0}};
    for (const Rank& rank : ranks_) {
      for (const int stream : {0, 1}) watched.push_back({rank.output.fd(stream), POLLIN, 0});
    }
    ::poll(watched.data(), watched.size(), cluster::poll_timeout(kill_at_.value_or(hang_watch_.next_look())));
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) ranks_[(i - 1) / 2].output.read(static_cast<int>((i - 1) % 2));
    }
  }

  void ask_to_end(int signal) {
    if (stopping()) {
      if (outcome_.exit_code == 0) outcome_.exit_code = 128 + signal;
      outcome_.user_signal = signal;
      return kill_all();
    }
    outcome_.user_signal = signal;
    log::info(
        "{}: stopping; ranks may finish their step and save, for at most {}; a second Ctrl-C ends them at once",
        signal_text(signal), seconds_text(options_.stop.grace));
    stop_within(options_.stop.grace);
  }

  // To those processes only that wait for it: it would kill the others.
  void pass_on(int signal) const {
    for (const Rank& rank : ranks_) {
      if (!rank.process.alive()) continue;
      if (rank.process.handles(signal)) {
        ::kill(rank.process.pid(), signal);
      } else {
        log::warning("{} was not passed on to rank {}: its program does not handle it", signal_text(signal),
                     rank.rank);
      }
    }
  }

  void note_end(Rank& rank, const Ending& ending) {
    rank.output.finish();
    endings_[static_cast<size_t>(rank.rank)] = ending.text();
    if (ending.good()) return;
    const bool asked_for = was_asked_for(ending);
    if (outcome_.exit_code == 0) {
      outcome_.exit_code =
          asked_for && outcome_.user_signal ? 128 + *outcome_.user_signal : ending.exit_code();
    }
    if (asked_for) return;
    tell(rank, ending);
    if (!outcome_.failure.empty()) return;
    if (any_alive()) log::info("stopping the other ranks");
    fail(take_record(fmt::format("rank {} (process {}) {}", rank.rank, rank.process.pid(), ending.text())));
  }

  void look_for_a_hang() {
    FlightRecord record = take_record("");
    const auto hang = diagnose_hang(record, std::chrono::duration<double>(options_.hang_timeout).count());
    if (!hang) return;
    record.reason = *hang;
    outcome_.exit_code = hang_exit_code;
    log::error("{}", *hang);
    log::info("stopping all ranks");
    fail(std::move(record));
  }

  void fail(FlightRecord record) {
    outcome_.failure = record.reason;
    outcome_.record = std::move(record);
    if (any_alive()) stop_within(options_.stop.failure_grace);
  }

  FlightRecord take_record(const std::string& reason) const {
    FlightRecord record{.host = host_name(),
                        .time = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::time(nullptr))),
                        .reason = reason,
                        .restart_count = options_.restart_count,
                        .max_restarts = options_.max_restarts};
    for (const Rank& rank : ranks_) {
      RankRecord& kept = record.ranks.emplace_back(RankRecord{.rank = rank.rank, .pid = rank.process.pid()});
      kept.ending = endings_[static_cast<size_t>(rank.rank)];
      if (rank.process.alive()) kept.state = process_state(rank.process.pid());
      read_board(board_, kept);
    }
    return record;
  }

  bool stopping() const { return kill_at_.has_value(); }

  bool was_asked_for(const Ending& ending) const {
    return stopping() && (ending.signal == SIGTERM || (killed_ && ending.signal == SIGKILL));
  }

  // The first failure in full, later ones in short: mostly they are the other ranks' missing the first. Rank
  // 0's last lines stand on the terminal already.
  void tell(const Rank& rank, const Ending& ending) const {
    std::string text = fmt::format("rank {} (process {}) {}", rank.rank, rank.process.pid(), ending.text());
    if (!outcome_.failure.empty()) return log::info("{}, after the first failure", text);
    if (ending.signal == SIGKILL) text += "; the system does that when memory runs out";
    const std::string lines = rank.rank == 0 ? "" : rank.output.last_lines();
    if (!rank.output.log().empty()) text += fmt::format("; its log is {}", rank.output.log().string());
    if (!lines.empty()) text += "\n  its last lines:\n" + lines.substr(0, lines.size() - 1);
    log::error("{}", text);
  }

  // One SIGTERM, however often the job is told to end; the earliest end of patience counts.
  void stop_within(std::chrono::milliseconds patience) {
    const auto kill_at = Clock::now() + patience;
    if (!stopping()) send(SIGTERM);
    if (!kill_at_ || kill_at < *kill_at_) {
      kill_at_ = kill_at;
      patience_ = patience;
    }
  }

  void kill_the_rest() {
    for (const Rank& rank : ranks_) {
      if (!rank.process.alive()) continue;
      log::info("rank {} did not end within {} of being asked to: killed", rank.rank,
                seconds_text(patience_));
    }
    kill_all();
  }

  void kill_all() {
    killed_ = true;
    kill_at_ = Clock::time_point::max();
    send(SIGKILL);
  }

  void send(int signal) const {
    for (const Rank& rank : ranks_) rank.process.signal(signal);
  }

  std::vector<Rank>& ranks_;
  const SignalGuard& signals_;
  const cluster::FlightBoard& board_;
  SuperviseOptions options_;
  HangWatch hang_watch_;
  std::vector<std::string> endings_;  // how each rank ended; empty while it lives
  std::optional<Clock::time_point>
      kill_at_;                           // set when the ranks have been asked to end: they are to by then
  std::chrono::milliseconds patience_{};  // how long that was when it began
  bool killed_ = false;
  Outcome outcome_;
};

}  // namespace

std::string seconds_text(std::chrono::milliseconds duration) {
  return fmt::format("{} s", std::chrono::duration<double>(duration).count());
}

Outcome supervise(std::vector<Rank>& ranks, const SignalGuard& signals, const cluster::FlightBoard& board,
                  const SuperviseOptions& options) {
  return Supervisor(ranks, signals, board, options).run();
}

}  // namespace stretto::launch
