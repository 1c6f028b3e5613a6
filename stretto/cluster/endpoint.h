#pragma once

#include <string>
#include <string_view>

namespace stretto::cluster {

// A TCP address: a host name or numeric address, and a port (0: bind to any free one). A `host` that begins
// with "@" names an abstract Unix socket instead (unix(7)), which only processes of this host's network
// namespace can reach; `port` is then ignored.
struct Endpoint {
  std::string host;
  int port = 0;
  bool is_unix() const { return host.starts_with('@'); }
  std::string text() const;  // "127.0.0.1:29500", "[::1]:29500", "@name"
};

// Parses "host:port" or "[host]:port". Throws ConfigError that begins with `what`.
Endpoint parse_endpoint(std::string_view text, std::string_view what);

}  // namespace stretto::cluster
