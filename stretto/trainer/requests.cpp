#include "stretto/trainer/requests.h"

namespace stretto {
namespace {

// A signal handler reaches nothing else.
volatile std::sig_atomic_t save_asked = 0;
volatile std::sig_atomic_t stop_asked = 0;

void ask_to_save(int) { save_asked = 1; }
void ask_to_stop(int) { stop_asked = 1; }

void handle(int signal, void (*handler)(int), int flags, struct sigaction& old) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | flags;
  sigaction(signal, &action, &old);
}

}  // namespace

RequestSignals::RequestSignals() {
  save_asked = 0;
  stop_asked = 0;
  handle(SIGUSR1, ask_to_save, 0, old_save_);
  handle(SIGINT, ask_to_stop, static_cast<int>(SA_RESETHAND), old_interrupt_);
  handle(SIGTERM, ask_to_stop, static_cast<int>(SA_RESETHAND), old_terminate_);
}

RequestSignals::~RequestSignals() {
  sigaction(SIGUSR1, &old_save_, nullptr);
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

Requests RequestSignals::take() const {
  const Requests requests = {.save = save_asked != 0, .stop = stop_asked != 0};
  save_asked = 0;
  return requests;
}

}  // namespace stretto
