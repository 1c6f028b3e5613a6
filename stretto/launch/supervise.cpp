#include "stretto/launch/supervise.h"

#include <algorithm>
#include <optional>

#include <poll.h>

#include "stretto/base/log.h"
#include "stretto/cluster/socket.h"

namespace stretto::launch {
namespace {

using cluster::Clock;

class Supervisor {
 public:
  Supervisor(std::vector<Rank>& ranks, const SignalGuard& signals, const StopOptions& options)
      : ranks_(ranks), signals_(signals), options_(options) {}

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
    ::poll(watched.data(), watched.size(), kill_at_ ? cluster::poll_timeout(*kill_at_) : -1);
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
        "{}: stopping; ranks may finish their step and save, for at most {}; a second Ctrl-C ends them at "
        "once",
        signal_text(signal), seconds_text(options_.grace));
    stop_within(options_.grace);
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
    if (ending.good()) return;
    const bool asked_for = was_asked_for(ending);
    if (outcome_.exit_code == 0) {
      outcome_.exit_code =
          asked_for && outcome_.user_signal ? 128 + *outcome_.user_signal : ending.exit_code();
    }
    if (asked_for) return;
    tell(rank, ending);
    if (!outcome_.failure.empty()) return;
    outcome_.failure = fmt::format("rank {} (process {}) {}", rank.rank, rank.process.pid(), ending.text());
    if (!any_alive()) return;
    log::info("stopping the other ranks");
    stop_within(options_.failure_grace);
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
  StopOptions options_;
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

Outcome supervise(std::vector<Rank>& ranks, const SignalGuard& signals, const StopOptions& options) {
  return Supervisor(ranks, signals, options).run();
}

}  // namespace stretto::launch
