#pragma once

#include <string>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// Encrypted connections between processes that know a secret: TLS 1.3 (RFC 8446) with AES-128-GCM, a
// pre-shared key that is derived from the secret, and a Diffie-Hellman key per connection, so that recorded
// traffic stays secret if the secret leaks later. There are no certificates.
//
//   caller  <-- Unix socket pair -->  a thread of this process  <-- TLS over TCP -->  the other process
//
// Callers use the descriptor that they get like the connection itself: send, recv, poll, shutdown and close
// have the same effects on the other side. One thread per process serves all connections.

// What the accepting side of a connection sends first, in clear, so that a process that does not encrypt can
// recognise it. No longer than the first message of any protocol between hosts.
inline constexpr std::string_view tls_greeting = "stretto: this port is encrypted\n";

// The other side of a connection has another secret, or only one side encrypts.
struct PeerRefusal : DistributedError {
  using DistributedError::DistributedError;
};
struct OneSideEncrypts : PeerRefusal {
  using PeerRefusal::PeerRefusal;
};

// The accepting side. Returns at once; if the other side does not know the secret, the descriptor reads as
// closed. Throws IoError if the system has no descriptors left.
Fd accept_tls(Fd connection, const std::string& secret);

// The connecting side. Throws PeerRefusal, beginning with the peer's address, and DistributedError if
// `deadline` passed or the system has no descriptors left.
Fd connect_tls(Fd connection, const Endpoint& peer, const std::string& secret, Clock::time_point deadline);

// Throws PeerRefusal if `received`, the first bytes that a peer sent to this process, which does not
// encrypt, show that the peer does.
void require_plain(std::string_view received, const Endpoint& peer);

// Waits until what was written to descriptors that are closed now has been handed to the system, for up to
// two seconds. Call it after closing, where a process may end.
void flush_tls();

}  // namespace stretto::cluster
