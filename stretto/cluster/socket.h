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

// Returns a socket that is bound to `where` and does not listen yet. A TCP port is then reserved, although a
// process that sets SO_REUSEADDR, as servers do, can still bind and listen on it. Throws IoError.
Fd bind_socket(const Endpoint& where);

// The user of the process at the other end of a Unix socket (SO_PEERCRED); nullopt for other sockets.
std::optional<uid_t> peer_user(const Fd& socket);

// The other end of a connection, for messages: "10.0.0.1 port 3000", "a local process".
std::string peer_text(const Fd& socket);

// The numeric address that a socket is bound to. Throws IoError.
Endpoint bound_endpoint(const Fd& socket);

// The address of this host that `peer` would see; sends nothing. If `peer` is this host's own name and
// resolves to 127.x, as on Debian, the address of its outgoing interface. Throws DistributedError if there is
// no route.
std::string address_towards(const Endpoint& peer);

// Whether `where` is a name that resolves to 127.x on this host, like a host's own name on Debian, and most
// likely to an address of this host on others. Throws DistributedError if it cannot be resolved.
bool names_this_host_only_here(const Endpoint& where);

// Whether the numeric `address` is one of those that `where` resolves to.
bool resolves_to(const Endpoint& where, const std::string& address);

// Connects, sends and receives on non-blocking sockets, as connect_socket returns them. These functions
// return when everything is done, and throw DistributedError, beginning with the peer's address, if the peer
// closed the connection or `deadline` passed. connect_socket retries until the deadline while the peer
// refuses, since the peer may start later; a Unix socket must belong to this user.
Fd connect_socket(const Endpoint& peer, Clock::time_point deadline);
void send_all(const Fd& socket, const Endpoint& peer, std::string_view bytes, Clock::time_point deadline);
std::string receive_exactly(const Fd& socket, const Endpoint& peer, size_t bytes, Clock::time_point deadline);

// Whether a call on a non-blocking socket failed only because it would have to wait. `error`: its errno.
bool would_block(int error);

// Disables Nagle's algorithm, so that small messages are sent at once. Failure is harmless and ignored.
void set_no_delay(const Fd& socket);

// Milliseconds until `deadline` for poll(), rounded up; 0 when it has passed.
int poll_timeout(Clock::time_point deadline);

// poll(2) until `deadline`, but for at most PauseWatch::longest_sleep. Moves `deadline` by the time for which
// this process was stopped, so check it after the call.
int poll_awake(std::span<pollfd> watched, Clock::time_point& deadline);

}  // namespace stretto::cluster
