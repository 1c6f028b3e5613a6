#include "stretto/launch/group_stop.h"

#include <signal.h>

#include "stretto/base/log.h"
#include "stretto/launch/diagnosis/diagnosis.h"

namespace stretto::launch {

std::string seconds_text(std::chrono::milliseconds duration) {
  return fmt::format("{} s", std::chrono::duration<double>(duration).count());
}

void GroupStop::postpone(Clock::duration time) {
  if (deadline_ && *deadline_ != Clock::time_point::max()) *deadline_ += time;
}

void GroupStop::within(std::chrono::milliseconds patience) {
  if (killed_) return;
  const auto deadline = Clock::now() + patience;
  if (!begun()) {
    for (Rank& rank : ranks_) rank.process.terminate();
  }
  if (deadline_ && *deadline_ <= deadline) return;
  deadline_ = deadline;
  patience_ = patience;
}

void GroupStop::kill() {
  if (!killed_) deadline_ = Clock::now() + options_.death_patience;
  killed_ = true;
  send(SIGKILL);
}

std::vector<int> GroupStop::next_stage() {
  if (!deadline_ || Clock::now() < *deadline_) return {};
  if (killed_) return give_up();
  for (const Rank& rank : ranks_) {
    if (!rank.process.alive()) continue;
    log::info("rank {} did not exit within {} of SIGTERM: killed", rank.rank, seconds_text(patience_));
  }
  kill();
  return {};
}

// SIGKILL ends every process at once, except while the kernel waits in it for a device, or a debugger holds
// it.
std::vector<int> GroupStop::give_up() {
  std::vector<int> left;
  for (Rank& rank : ranks_) {
    if (!rank.process.alive()) continue;
    log::error(
        "rank {} (process {}) did not end within {} of SIGKILL: it is {}; the launcher does not wait for it; check the disk or device that it uses",
        rank.rank, rank.process.pid(), seconds_text(options_.death_patience),
        state_text(process_state(rank.process.pid())));
    rank.process.abandon();
    rank.output.finish();
    left.push_back(rank.local_rank);
  }
  deadline_ = Clock::time_point::max();
  return left;
}

void GroupStop::send(int signal) {
  for (Rank& rank : ranks_) rank.process.signal(signal);
}

bool GroupStop::explains(const Rank& rank, const Ending& ending) const {
  return begun() && (ending.signal == SIGTERM || (ending.signal == SIGKILL && rank.process.was_killed()));
}

}  // namespace stretto::launch
