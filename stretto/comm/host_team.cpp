#include "stretto/comm/host_team.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto::comm {
namespace {

using nlohmann::json;

std::vector<int> usable_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The memory of the host, limited so that the segments of its ranks fit into the 128 TiB address space of a
// process.
size_t segment_limit(size_t ranks_of_host) {
  const auto memory =
      static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return std::min(memory, (size_t{32} << 40) / ranks_of_host);
}

uint64_t random_token() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// The ranks of a group and their rendezvous store.
struct CardExchange {
  c10d::Store& store;
  int rank, size;
  std::chrono::milliseconds deadline;

  // The values that the ranks have set under their own keys, in rank order. Values are not trusted: `Card`
  // parses its JSON and throws for values that no rank writes.
  template <class Card>
  std::vector<Card> exchange(const std::string& name, const Card& own) const {
    std::vector<std::string> keys;
    for (int of = 0; of < size; ++of) keys.push_back(fmt::format("{}.{}", name, of));
    store.set(keys[static_cast<size_t>(rank)], json(own).dump());
    for (size_t begin = 0; begin < keys.size(); begin += keys_per_wait) {
      const size_t end = std::min(keys.size(), begin + keys_per_wait);
      store.wait({keys.begin() + static_cast<ptrdiff_t>(begin), keys.begin() + static_cast<ptrdiff_t>(end)},
                 deadline);
    }
    std::vector<Card> all;
    for (const std::string& key : keys) {
      try {
        all.push_back(json::parse(store.get_to_str(key)).get<Card>());
      } catch (const json::exception&) {
        throw DistributedError(
            "the rendezvous store's key {} has an invalid value; all ranks must run the same version of stretto, and no other program may use this store",
            key);
      }
    }
    return all;
  }
  static constexpr size_t keys_per_wait = 1024;
};

// The host that a rank runs on.
struct Location {
  std::string host;
  pid_t process = 0;
  std::vector<int> cpus = {};
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(Location, host, process, cpus)
};

// The segment of a rank. `refusal`: why there is none; the other members are then unset.
struct Memory {
  std::string refusal;
  int fd = -1;
  uint64_t token = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(Memory, refusal, fd, token)
};

// Opens the segment and the process of another rank of this host.
HostTeam::Peer open_peer(int rank, pid_t process, const Memory& memory, size_t room, size_t limit) {
  HostTeam::Peer peer{.rank = rank, .process = process};
  peer.mapping = SharedSegment::open(process, memory.fd, room, limit);
  peer.data = peer.mapping->data();
  peer.size = peer.mapping->size();
  if (reinterpret_cast<SharedControl*>(peer.data)->token != memory.token)
    throw IoError("descriptor {} of process {} is not the memory of rank {}", memory.fd, process, rank);
  if (process == ::getpid()) return peer;
  peer.life = Fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!peer.life) throw IoError("cannot watch process {}: pidfd_open: {}", process, std::strerror(errno));
  return peer;
}

// The ranks of each host, grouped by host name.
std::vector<std::vector<int>> by_host(const std::vector<Location>& locations) {
  std::vector<std::vector<int>> hosts;
  for (size_t rank = 0; rank < locations.size(); ++rank) {
    const auto same = [&](const std::vector<int>& host) {
      return locations[static_cast<size_t>(host[0])].host == locations[rank].host;
    };
    auto found = std::find_if(hosts.begin(), hosts.end(), same);
    if (found == hosts.end()) found = hosts.emplace(hosts.end());
    found->push_back(static_cast<int>(rank));
  }
  return hosts;
}

// The first reason of a refusal; "" if all have succeeded.
std::string first_refusal(const std::vector<std::string>& refusals) {
  const auto found = std::find_if(refusals.begin(), refusals.end(),
                                  [](const std::string& refusal) { return !refusal.empty(); });
  return found == refusals.end() ? "" : *found;
}

}  // namespace

std::string this_host() {
  std::array<char, 128> name{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  return std::string(trim(read_file("/proc/sys/kernel/random/boot_id"))) + " " +
         std::string(name.data(), static_cast<size_t>(std::max<ssize_t>(0, length)));
}

HostTeam::HostTeam(std::shared_ptr<SharedSegment> own, std::vector<Peer> peers, int me, bool crowded,
                   std::vector<int> world_ranks)
    : own_(std::move(own)),
      peers_(std::move(peers)),
      me_(me),
      crowded_(crowded),
      world_ranks_(std::move(world_ranks)) {}

HostTeam::~HostTeam() {
  if (!own_) return;  // moved from
  SharedControl& own = control(me_);
  const bool failing = std::uncaught_exceptions() > exceptions_;
  if (own.membership == Membership::member) own.membership = failing ? Membership::unwound : Membership::left;
  announce(own);
}

std::string HostTeam::absence(int position) const {
  const Peer& other = peer(position);
  const SharedControl& peer_control = control(position);
  switch (peer_control.membership.load()) {
    case Membership::failed:
      return std::string(peer_control.failure, ::strnlen(peer_control.failure, sizeof peer_control.failure));
    case Membership::left:
      return fmt::format("rank {} has left the group", other.rank);
    case Membership::unwound:
      return fmt::format("rank {} (process {}) has failed; see its output for the reason", other.rank,
                         other.process);
    case Membership::member:
      break;
  }
  pollfd life = {.fd = other.life.get(), .events = POLLIN, .revents = 0};
  if (!other.life || ::poll(&life, 1, 0) != 1) return "";
  return fmt::format("rank {} (process {}) has ended", other.rank, other.process);
}

void HostTeam::await_end(int position) const {
  const Fd& life = peer(position).life;
  if (!life) return;
  const bool failing = control(position).membership == Membership::unwound;
  const std::chrono::milliseconds at_most = failing ? std::chrono::seconds(30) : std::chrono::seconds(3);
  constexpr std::chrono::milliseconds grace(200);
  pollfd watched = {.fd = life.get(), .events = POLLIN, .revents = 0};
  ::poll(&watched, 1, static_cast<int>(at_most.count()));
  std::this_thread::sleep_for(grace);
}

void HostTeam::report_failure(const std::string& why) {
  SharedControl& own = control(me_);
  if (own.membership != Membership::member) return;
  std::memcpy(own.failure, why.data(), std::min(why.size(), sizeof own.failure - 1));
  own.membership = Membership::failed;
  announce(own);
}

Hosts exchange_hosts(c10d::Store& store, int rank, int size, const GroupOptions& options, size_t room) {
  const CardExchange cards = {store, rank, size, options.deadline};
  const auto shown = [&](int of) { return world_rank(options.world_ranks, of); };
  std::string refusal;
  Location here = {.host = options.host, .process = ::getpid(), .cpus = usable_cpus()};
  try {
    if (here.host.empty()) here.host = this_host();
  } catch (const IoError& error) {
    refusal = fmt::format("rank {}: {}", shown(rank), error.what());
  }
  const auto locations = cards.exchange("hosts", here);
  Hosts hosts;
  hosts.ranks = by_host(locations);
  while (!std::count(hosts.ranks[hosts.own].begin(), hosts.ranks[hosts.own].end(), rank)) ++hosts.own;
  const std::vector<int>& ranks = hosts.ranks[hosts.own];
  const size_t limit = segment_limit(ranks.size());

  std::shared_ptr<SharedSegment> own;
  Memory memory = {.refusal = refusal};
  try {
    own = SharedSegment::create(room, limit);
    memory.fd = own->fd();
    memory.token = random_token();
    reinterpret_cast<SharedControl*>(own->data())->token = memory.token;
  } catch (const IoError& error) {
    memory.refusal = fmt::format("rank {}: {}", shown(rank), error.what());
  }
  const auto memories = cards.exchange("hosts.memory", memory);
  for (const Memory& other : memories) {
    if (hosts.refusal.empty()) hosts.refusal = other.refusal;
  }
  if (!hosts.refusal.empty()) return hosts;

  std::vector<HostTeam::Peer> peers;
  std::set<int> cpus;
  try {
    for (const int of : ranks) {
      const Location& there = locations[static_cast<size_t>(of)];
      cpus.insert(there.cpus.begin(), there.cpus.end());
      if (of == rank) {
        peers.push_back(
            {.rank = shown(rank), .process = ::getpid(), .data = own->data(), .size = own->limit()});
      } else {
        peers.push_back(open_peer(shown(of), there.process, memories[static_cast<size_t>(of)], room, limit));
      }
    }
  } catch (const IoError& error) {
    refusal = fmt::format("rank {}: {}", shown(rank), error.what());
  }
  hosts.refusal = first_refusal(cards.exchange("hosts.met", refusal));
  if (!hosts.refusal.empty()) return hosts;
  const auto me = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  hosts.team = std::make_unique<HostTeam>(std::move(own), std::move(peers), static_cast<int>(me),
                                          cpus.size() < ranks.size(), options.world_ranks);
  return hosts;
}

}  // namespace stretto::comm
