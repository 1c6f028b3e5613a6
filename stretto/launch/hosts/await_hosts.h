#pragma once

#include <optional>

#include "stretto/launch/hosts/link.h"
#include "stretto/launch/supervise.h"

namespace stretto::launch {

// Waits until all hosts are ready to start their ranks. Returns the outcome of the job if a user ends it or a
// host is lost first.
std::optional<Outcome> await_hosts(HostLink& link, const SignalGuard& signals);

// Announces that this host does not participate in start number `life`, because of `signal`, and waits for
// the others to end.
void end_before_start(HostLink& link, int life, int signal);

}  // namespace stretto::launch
