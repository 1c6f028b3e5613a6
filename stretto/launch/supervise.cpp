#include "stretto/launch/supervise.h"

#include <algorithm>
#include <optional>

#include <poll.h>

#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/socket.h"

namespace stretto::launch {
namespace {

using cluster::Clock;

class Supervisor {
 public:
  Supervisor(std::vector<Rank>& ranks, const SignalGuard& signals, std::chrono::milliseconds grace)
      : ranks_(ranks), signals_(signals), grace_(grace) {}

  int run() {
    while (any_alive()) {
      wait_and_carry_output();
      while (const auto signal = signals_.next()) {
        if (*signal != SIGCHLD) pass_on(*signal);
      }
      for (Rank& rank : ranks_) {
        if (const auto ending = rank.process.reap()) note_end(rank, *ending);
      }
      if (kill_at_ && Clock::now() >= *kill_at_) kill_the_rest();
    }
    return exit_code_;
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

  void pass_on(int signal) {
    if (passed_on_ || kill_at_) {
      if (exit_code_ == 0) exit_code_ = 128 + signal;
      send(SIGKILL);
      return;
    }
    passed_on_ = signal;
    log::info("{}: passed on to the ranks; a second one kills them", signal_text(signal));
    send(signal);
  }

  void note_end(Rank& rank, const Ending& ending) {
    rank.output.finish();
    if (ending.good()) return;
    if (!asked_for(ending)) tell(rank, ending);
    if (exit_code_ == 0) exit_code_ = ending.exit_code();
    if (!kill_at_) stop_the_rest();
  }

  bool asked_for(const Ending& ending) const {
    if (passed_on_ && ending.signal == *passed_on_) return true;
    return kill_at_ && (ending.signal == SIGTERM || ending.signal == SIGKILL);
  }

  // The first failure in full, later ones in short: mostly they are the other ranks' missing the first. Rank
  // 0's last lines stand on the terminal already.
  void tell(const Rank& rank, const Ending& ending) const {
    std::string text = fmt::format("rank {} (process {}) {}", rank.rank, rank.process.pid(), ending.text());
    if (kill_at_) return log::info("{}, after the first failure", text);
    if (ending.signal == SIGKILL) text += "; the system does that when memory runs out";
    const std::string lines = rank.rank == 0 ? "" : rank.output.last_lines();
    if (!rank.output.log().empty()) text += fmt::format("; its log is {}", rank.output.log().string());
    if (!lines.empty()) text += "\n  its last lines:\n" + lines.substr(0, lines.size() - 1);
    log::error("{}", text);
  }

  void stop_the_rest() {
    kill_at_ = Clock::now() + grace_;
    if (!any_alive()) return;
    log::info("stopping the other ranks");
    if (!passed_on_) send(SIGTERM);  // else they have been asked to stop already
  }

  void kill_the_rest() {
    for (const Rank& rank : ranks_) {
      if (!rank.process.alive()) continue;
      log::warning("rank {} did not end within {} of being asked to: killed", rank.rank,
                   human_duration(std::chrono::duration<double>(grace_).count()));
    }
    send(SIGKILL);
    kill_at_ = Clock::time_point::max();
  }

  void send(int signal) const {
    for (const Rank& rank : ranks_) rank.process.signal(signal);
  }

  std::vector<Rank>& ranks_;
  const SignalGuard& signals_;
  std::chrono::milliseconds grace_;
  std::optional<Clock::time_point> kill_at_;  // set when a rank has failed: the others are to end by then
  std::optional<int> passed_on_;              // the first signal the launcher itself got
  int exit_code_ = 0;
};

}  // namespace

int supervise(std::vector<Rank>& ranks, const SignalGuard& signals, std::chrono::milliseconds grace) {
  return Supervisor(ranks, signals, grace).run();
}

}  // namespace stretto::launch
