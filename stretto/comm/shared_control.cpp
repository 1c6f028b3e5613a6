#include "stretto/comm/shared_control.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stretto::comm {

// The futex is shared between processes, hence no FUTEX_PRIVATE_FLAG.
void announce(SharedControl& own) {
  // Either the sleeper sees the new count and does not sleep, or this rank sees the sleeper: both use one
  // total order.
  own.events.fetch_add(1, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) == 0) return;
  ::syscall(SYS_futex, &own.events, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void sleep_until_announced(SharedControl& peer, uint32_t seen, std::chrono::milliseconds timeout) {
  const timespec time = {.tv_sec = timeout.count() / 1000, .tv_nsec = timeout.count() % 1000 * 1'000'000};
  ::syscall(SYS_futex, &peer.events, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace stretto::comm
