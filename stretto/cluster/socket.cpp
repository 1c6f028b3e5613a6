#include "stretto/cluster/socket.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/pause_watch.h"

namespace stretto::cluster {
namespace {

// A socket address of any family.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

template <class ErrorType>
Address unix_address(const Endpoint& where) {
  sockaddr_un address{};
  if (where.host.size() > sizeof address.sun_path) throw ErrorType("{}: the name is too long", where.text());
  address.sun_family = AF_UNIX;
  where.host.copy(address.sun_path, where.host.size());
  address.sun_path[0] = '\0';  // abstract
  Address result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + where.host.size());
  return result;
}

// All addresses that a name resolves to, in the system's order of preference; at least one.
template <class ErrorType>
std::vector<Address> resolve(const Endpoint& where) {
  if (where.is_unix()) return {unix_address<ErrorType>(where)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (code != 0) throw ErrorType("{}: the host cannot be found: {}", where.text(), ::gai_strerror(code));
  std::vector<Address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
  }
  ::freeaddrinfo(found);
  return addresses;
}

Endpoint numeric_endpoint(const Address& address) {
  if (address.family() == AF_UNIX) {
    const auto& name = reinterpret_cast<const sockaddr_un&>(address.storage);
    const size_t length = address.size - offsetof(sockaddr_un, sun_path);
    return {length == 0 ? "@" : "@" + std::string(name.sun_path + 1, length - 1), 0};
  }
  char host[NI_MAXHOST], port[NI_MAXSERV];
  const int code = ::getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port,
                                 NI_NUMERICHOST | NI_NUMERICSERV);
  if (code != 0) throw IoError("cannot read a socket's address: {}", ::gai_strerror(code));
  return {host, static_cast<int>(parse_int(port).value_or(0))};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void require_own_user(const Fd& socket, const Endpoint& peer) {
  const auto user = peer_user(socket);
  if (!user || *user == ::geteuid()) return;
  throw DistributedError(
      "{}: user {} listens there, not user {}, who runs this process; another user has taken the name, choose another MASTER_PORT",
      peer.text(), *user, ::geteuid());
}

// Waits for `events`. Returns false at the deadline.
bool wait_for(const Fd& socket, short events, Clock::time_point& deadline) {
  while (true) {
    pollfd watched{socket.get(), events, 0};
    const int ready = poll_awake({&watched, 1}, deadline);
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR)
      throw DistributedError("cannot wait for a socket: {}", std::strerror(errno));
  }
}

// One attempt. Returns 0 or the errno of the failure.
int try_connect(const Fd& socket, const Address& address, Clock::time_point deadline) {
  if (::connect(socket.get(), address.get(), address.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

std::string Endpoint::text() const {
  if (is_unix()) return host;
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
  const Address address = resolve<IoError>(where)[0];
  Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), address.get(), address.size) != 0) {
    throw IoError("cannot bind a socket to {}: {}", where.text(), std::strerror(errno));
  }
  return socket;
}

std::optional<uid_t> peer_user(const Fd& socket) {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX)
    return std::nullopt;
  ucred peer{};
  size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

bool names_this_host_only_here(const Endpoint& where) {
  const auto is_address_of_loopback = [](const Address& one) {
    return is_loopback(numeric_endpoint(one).host);
  };
  return !is_loopback(where.host) &&
         std::ranges::all_of(resolve<DistributedError>(where), is_address_of_loopback);
}

std::string address_towards(const Endpoint& peer) {
  int error = 0;
  for (const Address& destination : resolve<DistributedError>(peer)) {
    const Fd socket(::socket(destination.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::connect(socket.get(), destination.get(), destination.size) != 0) {
      error = errno;
      continue;
    }
    const std::string address = bound_endpoint(socket).host;
    if (!is_loopback(address) || is_loopback(peer.host)) return address;
    constexpr const char* outside = "192.0.2.1";  // an address for documentation (RFC 5737): no host has it
    try {
      return address_towards({outside, peer.port});
    } catch (const DistributedError&) {
      throw DistributedError(
          "{}: means {} on its own host, and there is no default route; use the address by which other hosts reach it",
          peer.text(), numeric_endpoint(destination).host);
    }
  }
  throw DistributedError("{}: there is no route: {}", peer.text(), std::strerror(error));
}

std::string peer_text(const Fd& socket) {
  if (peer_user(socket)) return "a local process";
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return fmt::format("{} port {}", host, port);
}

Endpoint bound_endpoint(const Fd& socket) {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0)
    throw IoError("cannot determine where a socket is bound: {}", std::strerror(errno));
  return numeric_endpoint(address);
}

bool resolves_to(const Endpoint& where, const std::string& address) {
  const auto addresses = resolve<DistributedError>(where);
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const Address& one) { return numeric_endpoint(one).host == address; });
}

Fd connect_socket(const Endpoint& peer, Clock::time_point deadline) {
  constexpr auto pause = std::chrono::milliseconds(50);
  const std::vector<Address> addresses = resolve<DistributedError>(peer);
  while (true) {
    int error = 0;
    for (const Address& address : addresses) {
      Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      error = socket ? try_connect(socket, address, deadline) : errno;
      if (error != 0) continue;
      require_own_user(socket, peer);
      set_no_delay(socket);
      return socket;
    }
    // EAGAIN: the queue of a Unix socket is full.
    const bool may_come_up =
        error == ECONNREFUSED || error == EAGAIN || error == EHOSTUNREACH || error == ENETUNREACH;
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
      if (!wait_for(socket, POLLOUT, deadline)) throw DistributedError("{}: does not read", peer.text());
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
        throw DistributedError("{}: did not answer in time", peer.text());
    } else if (errno != EINTR) {
      throw DistributedError("{}: the connection broke: {}", peer.text(), std::strerror(errno));
    }
  }
  return received;
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void set_no_delay(const Fd& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int poll_timeout(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

int poll_awake(std::span<pollfd> watched, Clock::time_point& deadline) {
  PauseWatch pauses;
  const auto until = std::min(deadline, Clock::now() + PauseWatch::longest_sleep);
  const int ready = ::poll(watched.data(), watched.size(), poll_timeout(until));
  const int error = errno;
  deadline += pauses.look();
  errno = error;
  return ready;
}

}  // namespace stretto::cluster
