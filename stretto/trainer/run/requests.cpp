#include "stretto/trainer/run/requests.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>

#include <pthread.h>

namespace stretto::trainer {
namespace {

// Lock-free atomics, as signal handlers require; exchange() loses no request between a read and a reset.
std::atomic<bool> save_requested = false;
std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void request_save(int) { save_requested = true; }

// The time of the first signal that requested a stop, by CLOCK_MONOTONIC, which signal handlers may read; 0:
// none has.
std::atomic<int64_t> first_stop_ns = 0;
static_assert(std::atomic<int64_t>::is_always_lock_free);

void request_stop(int signal) {
  constexpr int64_t second_ns = 1'000'000'000;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = time.tv_sec * second_ns + time.tv_nsec;
  int64_t first = 0;
  if (first_stop_ns.compare_exchange_strong(first, now)) first = now;
  stop_requested = true;
  if (now - first <= second_ns) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // delivered when this handler returns
}

struct Handled {
  int signal;
  void (*handler)(int);
  int flags;
};
constexpr std::array<Handled, 4> handled = {{{SIGUSR1, request_save, SA_RESTART},
                                             {SIGINT, request_stop, SA_RESTART},
                                             {SIGTERM, request_stop, SA_RESTART},
                                             {SIGHUP, request_stop, SA_RESTART}}};

std::mutex mutex;  // guards `living` and `before`
int living = 0;
std::array<struct sigaction, handled.size()> before;

void install() {
  save_requested = false;
  stop_requested = false;
  first_stop_ns = 0;
  for (size_t i = 0; i < handled.size(); ++i) {
    sigaction(handled[i].signal, nullptr, &before[i]);
    if (handled[i].signal == SIGHUP && before[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handled[i].handler;
    action.sa_flags = handled[i].flags;
    sigaction(handled[i].signal, &action, nullptr);
  }
}

}  // namespace

RequestSignals::RequestSignals() {
  const std::scoped_lock lock(mutex);
  if (living++ == 0) install();
  sigset_t save;
  sigemptyset(&save);
  sigaddset(&save, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &save, &mask_before_);
}

RequestSignals::~RequestSignals() {
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  const std::scoped_lock lock(mutex);
  if (--living > 0) return;
  for (size_t i = 0; i < handled.size(); ++i) sigaction(handled[i].signal, &before[i], nullptr);
}

Requests RequestSignals::take() const {
  return {.save = save_requested.exchange(false), .stop = stop_requested.load()};
}

}  // namespace stretto::trainer
