#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/types.h>

#include "stretto/base/fd.h"
#include "stretto/cluster/endpoint.h"

namespace stretto::cluster {

using Clock = std::chrono::steady_clock;

// A socket bound to `where` and not yet listening: a TCP port is taken, yet a process that sets SO_REUSEADDR, as servers
// do, can still bind and listen on it. Throws IoError.
Fd bind_socket(const Endpoint& where);

// The user whose process is at the other end of a Unix socket (SO_PEERCRED); nothing for other sockets.
std::optional<uid_t> peer_user(const Fd& socket);

// The other end of a connection, for messages: "10.0.0.1 port 3000", "a local process".
std::string peer_text(const Fd& socket);

// The address a socket is bound to, as numbers. Throws IoError.
Endpoint bound_endpoint(const Fd& socket);

// The address of this host that `peer` would see; nothing is sent. On a host whose own name resolves to 127.x, as on Debian,
// the address of its outgoing interface. Throws DistributedError where there is no route.
std::string address_towards(const Endpoint& peer);

// Whether `where` is a name that means 127.x on this host, as a host's own name does on Debian, and on others most likely an
// address of this host. Throws DistributedError where it cannot be resolved.
bool names_this_host_only_here(const Endpoint& where);

// Whether `address`, as numbers, is one of those that `where` stands for.
bool resolves_to(const Endpoint& where, const std::string& address);

// The three below are for non-blocking sockets as connect_socket makes them. They return when all is done,
// and throw DistributedError when the peer closed or `deadline` passed; the message begins with the peer's
// address. connect_socket tries again until the deadline while the peer refuses, so that it may start a
// little later; a Unix socket must be this user's.
Fd connect_socket(const Endpoint& peer, Clock::time_point deadline);
void send_all(const Fd& socket, const Endpoint& peer, std::string_view bytes, Clock::time_point deadline);
std::string receive_exactly(const Fd& socket, const Endpoint& peer, size_t bytes, Clock::time_point deadline);

// Whether a call on a non-blocking socket failed only because it would have to wait. `error`: its errno.
bool would_block(int error);

// Sends small messages at once (no Nagle algorithm). Failure is harmless and ignored.
void set_no_delay(const Fd& socket);

// Milliseconds until `deadline` for poll(), rounded up; 0 when it has passed.
int poll_timeout(Clock::time_point deadline);

// poll(2) until `deadline`, but for at most PauseWatch::longest_sleep. Moves `deadline` by the time in which
// this process was stopped, so that whether it has passed is to be asked afterwards.
int poll_awake(std::span<pollfd> watched, Clock::time_point& deadline);

}  // namespace stretto::cluster
