#include "stretto/cluster/interfaces.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::cluster {
namespace {

using Bytes = std::vector<unsigned char>;  // of an address: 4 or 16

std::string text_of(const Bytes& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text;
  ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

std::optional<Bytes> parse_address(const std::string& text) {
  Bytes bytes(4);
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(16);
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

bool is_link_local(const Bytes& bytes) {
  return bytes.size() == 16 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

struct OwnAddress {
  std::string interface;
  Bytes bytes;
};

// The addresses of interfaces that are up, in the system's order, without link-local IPv6 addresses.
std::vector<OwnAddress> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw IoError("cannot list network interfaces: {}", std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<OwnAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    Bytes bytes;
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto& address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
      bytes.assign(reinterpret_cast<const unsigned char*>(&address),
                   reinterpret_cast<const unsigned char*>(&address) + 4);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto& address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
      bytes.assign(address.s6_addr, address.s6_addr + 16);
    } else {
      continue;
    }
    if (!is_link_local(bytes)) addresses.push_back({entry->ifa_name, bytes});
  }
  return addresses;
}

bool is_in_network(const Bytes& address, const Bytes& network, int prefix) {
  if (address.size() != network.size()) return false;
  for (size_t bit = 0; bit < static_cast<size_t>(prefix); ++bit) {
    const unsigned mask = 0x80u >> (bit % 8);
    if ((address[bit / 8] & mask) != (network[bit / 8] & mask)) return false;
  }
  return true;
}

std::vector<OwnAddress> matching(const std::string& interface, std::string_view what,
                                 std::vector<OwnAddress> all) {
  const size_t slash = interface.find('/');
  if (slash == std::string::npos) {
    std::erase_if(all, [&](const OwnAddress& address) { return address.interface != interface; });
    return all;
  }
  const auto network = parse_address(interface.substr(0, slash));
  const auto prefix = parse_int(interface.substr(slash + 1));
  if (!network || !prefix || *prefix < 0 || *prefix > static_cast<long long>(network->size() * 8))
    throw ConfigError("{}: \"{}\" is not a network; expected for example 10.7.0.0/16 or fd77::/64", what,
                      interface);
  std::erase_if(all, [&](const OwnAddress& address) {
    return !is_in_network(address.bytes, *network, static_cast<int>(*prefix));
  });
  return all;
}

// The size of the first address that the peer's name resolves to; 0: unknown.
size_t address_size(const Endpoint& peer) {
  if (peer.host.empty()) return 0;
  try {
    return address_towards(peer).find(':') == std::string::npos ? 4 : 16;
  } catch (const DistributedError&) {
    return 0;
  }
}

}  // namespace

std::string address_on(const std::string& interface, std::string_view what, const Endpoint& peer) {
  const std::vector<OwnAddress> all = own_addresses();
  const std::vector<OwnAddress> found = matching(interface, what, all);
  if (found.empty()) {
    std::vector<std::string> names;
    for (const OwnAddress& address : all)
      names.push_back(fmt::format("{} ({})", address.interface, text_of(address.bytes)));
    throw ConfigError("{}: \"{}\": this host has no address there; its interfaces are {}", what, interface,
                      fmt::join(names, ", "));
  }
  const size_t size = address_size(peer);
  const auto fitting =
      std::ranges::find_if(found, [&](const OwnAddress& one) { return one.bytes.size() == size; });
  return text_of((fitting == found.end() ? found.front() : *fitting).bytes);
}

std::string own_address(const Endpoint& peer, const Getenv& getenv) {
  const std::string interface = getenv("STRETTO_INTERFACE").value_or("");
  return interface.empty() ? address_towards(peer) : address_on(interface, "STRETTO_INTERFACE", peer);
}

}  // namespace stretto::cluster
