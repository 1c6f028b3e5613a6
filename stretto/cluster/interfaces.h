#pragma once

#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// This host's numeric address on a network interface ("eth1") or in a network ("10.7.0.0/16", "fd77::/64").
// If an interface has addresses of both families, the family of `peer`, if that has a host, decides. Throws
// ConfigError that begins with `what` and names the existing interfaces.
std::string address_on(const std::string& interface, std::string_view what, const Endpoint& peer = {});

// The address on which the sockets of a job listen on this host: that of STRETTO_INTERFACE if it is set, else
// that by which it reaches `peer`. Throws DistributedError if there is no route, and ConfigError like
// address_on.
std::string own_address(const Endpoint& peer, const Getenv& getenv = process_environment);

}  // namespace stretto::cluster
