#include "stretto/cluster/socket.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <thread>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::cluster {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

template <class ErrorType>
Addresses resolve(const Endpoint& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (code != 0) throw ErrorType("{}: the host cannot be found: {}", where.text(), ::gai_strerror(code));
  return {found, &::freeaddrinfo};
}

// Waits until `events` are possible. False at the deadline.
bool wait_for(const Fd& socket, short events, Clock::time_point deadline) {
  while (true) {
    pollfd watched{socket.get(), events, 0};
    const int ready = ::poll(&watched, 1, poll_timeout(deadline));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR)
      throw DistributedError("cannot wait for a socket: {}", std::strerror(errno));
  }
}

// One attempt. Returns 0 or the errno of the failure.
int try_connect(const Fd& socket, const addrinfo& address, Clock::time_point deadline) {
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

std::string Endpoint::text() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", bracketed ? "[" : "", host, bracketed ? "]" : "", port);
}

Endpoint parse_endpoint(std::string_view text, std::string_view what) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  const auto port = parse_int(colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1));
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool ambiguous = !bracketed && host.find(':') != std::string_view::npos;
  if (host.empty() || ambiguous || !port || *port < 1 || *port > 65535) {
    throw ConfigError("{}: \"{}\" is not host:port, for example 127.0.0.1:29500", what, text);
  }
  return {std::string(host), static_cast<int>(*port)};
}

Fd bind_socket(const Endpoint& where) {
  const Addresses addresses = resolve<IoError>(where);
  Fd socket(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) {
    throw IoError("cannot bind a socket to {}: {}", where.text(), std::strerror(errno));
  }
  return socket;
}

std::string address_towards(const Endpoint& peer) {
  const Addresses addresses = resolve<DistributedError>(peer);
  const Fd socket(::socket(addresses->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0)
    throw DistributedError("{}: no way leads there: {}", peer.text(), std::strerror(errno));
  const std::string address = bound_endpoint(socket).host;
  const auto is_loopback = [](const std::string& host) {
    return host == "localhost" || host == "::1" || host.starts_with("127.");
  };
  constexpr const char* outside = "192.0.2.1";  // an address for documentation (RFC 5737): no host has it
  return is_loopback(address) && !is_loopback(peer.host) ? address_towards({outside, peer.port}) : address;
}

Endpoint bound_endpoint(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw IoError("cannot tell where a socket is bound: {}", std::strerror(errno));
  }
  const int code = ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port,
                                 sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (code != 0) throw IoError("cannot tell where a socket is bound: {}", ::gai_strerror(code));
  return {host, static_cast<int>(parse_int(port).value_or(0))};
}

Fd connect_socket(const Endpoint& peer, Clock::time_point deadline) {
  constexpr auto pause = std::chrono::milliseconds(50);
  const Addresses addresses = resolve<DistributedError>(peer);
  while (true) {
    int error = 0;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      Fd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      error = socket ? try_connect(socket, *address, deadline) : errno;
      if (error == 0) {
        set_no_delay(socket);
        return socket;
      }
    }
    const bool may_come_up = error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH;
    if (!may_come_up || Clock::now() + pause >= deadline) {
      throw DistributedError("{}: cannot connect: {}", peer.text(), std::strerror(error));
    }
    std::this_thread::sleep_for(pause);
  }
}

void send_all(const Fd& socket, const Endpoint& peer, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(socket, POLLOUT, deadline)) throw DistributedError("{}: takes no data", peer.text());
    } else if (errno != EINTR) {
      throw DistributedError("{}: the connection broke: {}", peer.text(), std::strerror(errno));
    }
  }
}

std::string receive_exactly(const Fd& socket, const Endpoint& peer, size_t bytes,
                            Clock::time_point deadline) {
  std::string received(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = ::recv(socket.get(), received.data() + filled, bytes - filled, 0);
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else if (got == 0) {
      throw DistributedError("{}: closed the connection", peer.text());
    } else if (errno == EAGAIN) {
      if (!wait_for(socket, POLLIN, deadline))
        throw DistributedError("{}: gave no answer in time", peer.text());
    } else if (errno != EINTR) {
      throw DistributedError("{}: the connection broke: {}", peer.text(), std::strerror(errno));
    }
  }
  return received;
}

void set_no_delay(const Fd& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int poll_timeout(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

}  // namespace stretto::cluster
