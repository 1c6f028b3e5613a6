#include "stretto/launch/hosts/await_hosts.h"

#include <poll.h>

#include "stretto/base/log.h"

namespace stretto::launch {
namespace {

using Kind = HostEvent::Kind;

constexpr int pause_ms = 500;

void wait_for_news(const HostLink& link, const SignalGuard* signals) {
  pollfd watched[] = {{link.fd(), POLLIN, 0}, {signals == nullptr ? -1 : signals->fd(), POLLIN, 0}};
  ::poll(watched, 2, pause_ms);
}

// Leaves the job before any rank of this host has been started.
void leave_job(HostLink& link, int exit_code) {
  link.post({.kind = Kind::stopped, .code = exit_code});
  while (!link.over()) {
    wait_for_news(link, nullptr);
    while (link.next()) {
    }
  }
}

}  // namespace

std::optional<Outcome> await_hosts(HostLink& link, const SignalGuard& signals) {
  size_t ready = 0;
  Outcome outcome;
  while (ready < link.plan().hosts.size()) {
    wait_for_news(link, &signals);
    while (const auto signal = signals.next()) {
      if (*signal == SIGTSTP) link.refuse_pause();
      if (!asks_to_end(*signal)) continue;
      link.post({.kind = Kind::stop, .code = *signal});
      outcome.user_signal = signal;
    }
    while (ready < link.plan().hosts.size()) {
      const auto event = link.next();
      if (!event) break;
      if (event->kind == Kind::ready) ++ready;
      if (event->kind == Kind::stop) outcome.user_signal = event->code;
      if (event->kind == Kind::lost || event->kind == Kind::failure) {
        log::error("{}", event->text);
        outcome.failure = event->text;
        outcome.exit_code = event->code;
        outcome.host_lost = true;
      }
    }
    if (outcome.user_signal) outcome.exit_code = 128 + *outcome.user_signal;
    if (outcome.exit_code == 0) continue;
    leave_job(link, outcome.exit_code);
    return outcome;
  }
  return std::nullopt;
}

void end_before_start(HostLink& link, int life, int signal) {
  link.begin(life);
  link.post({.kind = Kind::stop, .code = signal});
  leave_job(link, 128 + signal);
}

}  // namespace stretto::launch
