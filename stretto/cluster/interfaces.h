#pragma once

#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// This host's address on a network interface ("eth1") or in a network ("10.7.0.0/16", "fd77::/64"), as numbers. Where an interface has
// addresses of both families, one of that of `peer` if it has a host. Throws ConfigError that begins with `what` and names the
// interfaces that there are.
std::string address_on(const std::string& interface, std::string_view what, const Endpoint& peer = {});

// Where the sockets of a job listen on this host: the address on STRETTO_INTERFACE if that is set, else that by which it reaches `peer`.
// Throws DistributedError where there is no route, ConfigError.
std::string own_address(const Endpoint& peer, const Getenv& getenv = process_environment);

}  // namespace stretto::cluster
