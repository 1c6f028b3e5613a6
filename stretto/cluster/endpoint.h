#pragma once

#include <string>
#include <string_view>

namespace stretto::cluster {

// A TCP address: a host name or number, and a port (0: any free one, where one is to be bound). Where `host` begins with
// "@" it is the name of an abstract Unix socket instead (unix(7)), which only processes of this host's network namespace
// reach, and `port` means nothing.
struct Endpoint {
  std::string host;
  int port = 0;
  bool is_unix() const { return host.starts_with('@'); }
  std::string text() const;  // "127.0.0.1:29500", "[::1]:29500", "@name"
};

// Reads "host:port" or "[host]:port". Throws ConfigError that begins with `what`.
Endpoint parse_endpoint(std::string_view text, std::string_view what);

}  // namespace stretto::cluster
