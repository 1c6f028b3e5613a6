#include "stretto/trainer/requests.h"

#include <array>
#include <csignal>
#include <mutex>

namespace stretto {
namespace {

// A signal handler reaches nothing else.
volatile std::sig_atomic_t save_asked = 0;
volatile std::sig_atomic_t stop_asked = 0;

void ask_to_save(int) { save_asked = 1; }
void ask_to_stop(int) { stop_asked = 1; }

struct Handled {
  int signal;
  void (*handler)(int);
  int flags;
};
constexpr std::array<Handled, 3> handled = {
    {{SIGUSR1, ask_to_save, SA_RESTART},
     {SIGINT, ask_to_stop, SA_RESTART | static_cast<int>(SA_RESETHAND)},
     {SIGTERM, ask_to_stop, SA_RESTART | static_cast<int>(SA_RESETHAND)}}};

std::mutex mutex;  // for what follows
int living = 0;
std::array<struct sigaction, handled.size()> before;

}  // namespace

RequestSignals::RequestSignals() {
  const std::scoped_lock lock(mutex);
  if (living++ > 0) return;
  save_asked = 0;
  stop_asked = 0;
  for (size_t i = 0; i < handled.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = handled[i].handler;
    action.sa_flags = handled[i].flags;
    sigaction(handled[i].signal, &action, &before[i]);
  }
}

RequestSignals::~RequestSignals() {
  const std::scoped_lock lock(mutex);
  if (--living > 0) return;
  for (size_t i = 0; i < handled.size(); ++i) sigaction(handled[i].signal, &before[i], nullptr);
}

Requests RequestSignals::take() const {
  const Requests requests = {.save = save_asked != 0, .stop = stop_asked != 0};
  save_asked = 0;
  return requests;
}

}  // namespace stretto
