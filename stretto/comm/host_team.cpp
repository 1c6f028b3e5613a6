#include "stretto/comm/host_team.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

using nlohmann::json;

// Processes of one boot that know each other by the same process ids.
std::string this_host() {
  std::array<char, 128> name{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  return std::string(trim(read_file("/proc/sys/kernel/random/boot_id"))) + " " +
         std::string(name.data(), static_cast<size_t>(std::max<ssize_t>(0, length)));
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// As far as all memory of the host, but so that all ranks' segments fit into a process's 128 TiB of addresses.
size_t segment_limit(int ranks) {
  const auto memory =
      static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return std::min(memory, (size_t{32} << 40) / static_cast<size_t>(ranks));
}

uint64_t random_token() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// What every rank tells under a key of its own, read by all.
std::vector<std::string> exchange(c10d::Store& store, const std::string& name, const std::string& mine,
                                  int rank, int size, std::chrono::milliseconds deadline) {
  const auto key = [&](int of) { return fmt::format("{}.{}", name, of); };
  store.set(key(rank), mine);
  std::vector<std::string> all;
  for (int of = 0; of < size; ++of) {
    store.wait({key(of)}, deadline);
    all.push_back(store.get_to_str(key(of)));
  }
  return all;
}

HostTeam::Mate meet(int rank, const json& card) {
  HostTeam::Mate mate{.rank = rank, .process = card.at("process")};
  mate.mapping = SharedSegment::open(card.at("path"), card.at("limit"));
  mate.data = mate.mapping->data();
  if (reinterpret_cast<SharedControl*>(mate.data)->token != card.at("token").get<uint64_t>()) {
    throw IoError("{} is another process's", card.at("path").get<std::string>());
  }
  if (mate.process == ::getpid()) return mate;
  mate.life = Fd(static_cast<int>(::syscall(SYS_pidfd_open, mate.process, 0)));
  if (!mate.life)
    throw IoError("cannot watch process {}: pidfd_open: {}", mate.process, std::strerror(errno));
  return mate;
}

HostTeam build_team(const std::vector<int>& ranks, int rank, const std::vector<json>& cards,
                    std::shared_ptr<SharedSegment> own) {
  std::vector<HostTeam::Mate> mates;
  std::set<int> cpus;
  for (const int of : ranks) {
    const json& card = cards[static_cast<size_t>(of)];
    cpus.insert(card.at("cpus").begin(), card.at("cpus").end());
    if (of == rank) {
      mates.push_back({.rank = rank, .process = ::getpid(), .data = own->data()});
    } else {
      mates.push_back(meet(of, card));
    }
  }
  const auto me = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return HostTeam(std::move(own), std::move(mates), static_cast<int>(me), cpus.size() < ranks.size());
}

// Every host's ranks, by what they say their host is.
std::vector<std::vector<int>> by_host(const std::vector<json>& cards) {
  std::vector<std::vector<int>> hosts;
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const auto same = [&](const std::vector<int>& host) {
      return cards[static_cast<size_t>(host[0])].at("host") == cards[rank].at("host");
    };
    auto found = std::find_if(hosts.begin(), hosts.end(), same);
    if (found == hosts.end()) found = hosts.emplace(hosts.end());
    found->push_back(static_cast<int>(rank));
  }
  return hosts;
}

}  // namespace

HostTeam::HostTeam(std::shared_ptr<SharedSegment> own, std::vector<Mate> mates, int me, bool crowded)
    : own_(std::move(own)), mates_(std::move(mates)), me_(me), crowded_(crowded) {}

HostTeam::~HostTeam() {
  if (!own_) return;  // moved from
  SharedControl& mine = control(me_);
  if (mine.membership == Membership::member) mine.membership = Membership::left;
  announce(mine);
}

std::string HostTeam::absence(int place) const {
  const Mate& other = mate(place);
  const SharedControl& theirs = control(place);
  switch (theirs.membership.load()) {
    case Membership::failed:
      return std::string(theirs.failure, ::strnlen(theirs.failure, sizeof theirs.failure));
    case Membership::left:
      return fmt::format("rank {} has left the group", other.rank);
    case Membership::member:
      break;
  }
  pollfd life = {.fd = other.life.get(), .events = POLLIN, .revents = 0};
  if (!other.life || ::poll(&life, 1, 0) != 1) return "";
  return fmt::format("rank {} (process {}) has ended", other.rank, other.process);
}

void HostTeam::await_end(int place, std::chrono::milliseconds at_most) const {
  pollfd life = {.fd = mate(place).life.get(), .events = POLLIN, .revents = 0};
  if (mate(place).life) ::poll(&life, 1, static_cast<int>(at_most.count()));
}

void HostTeam::report_failure(const std::string& why) {
  SharedControl& mine = control(me_);
  if (mine.membership != Membership::member) return;
  std::memcpy(mine.failure, why.data(), std::min(why.size(), sizeof mine.failure - 1));
  mine.membership = Membership::failed;
  announce(mine);
}

Hosts meet_hosts(c10d::Store& store, int rank, int size, const GroupOptions& options, size_t room) {
  json card = {{"host", options.host}, {"process", ::getpid()}, {"cpus", usable_cpus()}, {"refusal", ""}};
  std::shared_ptr<SharedSegment> own;
  try {
    if (options.host.empty()) card["host"] = this_host();
    own = SharedSegment::create(room, segment_limit(size));
    card.update({{"path", own->path()}, {"limit", own->limit()}, {"token", random_token()}});
    reinterpret_cast<SharedControl*>(own->data())->token = card.at("token").get<uint64_t>();
  } catch (const IoError& error) {
    card["refusal"] = fmt::format("rank {}: {}", rank, error.what());
  }
  Hosts hosts;
  std::vector<json> cards;
  for (const std::string& text : exchange(store, "hosts", card.dump(), rank, size, options.deadline)) {
    cards.push_back(json::parse(text));
    if (hosts.refusal.empty()) hosts.refusal = cards.back().at("refusal");
  }
  hosts.ranks = by_host(cards);
  while (!std::count(hosts.ranks[hosts.mine].begin(), hosts.ranks[hosts.mine].end(), rank)) ++hosts.mine;
  if (!hosts.refusal.empty()) return hosts;

  std::string refusal;
  try {
    hosts.team = std::make_unique<HostTeam>(build_team(hosts.ranks[hosts.mine], rank, cards, own));
  } catch (const IoError& error) {
    refusal = fmt::format("rank {}: {}", rank, error.what());
  }
  for (const std::string& theirs : exchange(store, "hosts.met", refusal, rank, size, options.deadline)) {
    if (hosts.refusal.empty()) hosts.refusal = theirs;
  }
  if (!hosts.refusal.empty()) hosts.team.reset();
  return hosts;
}

}  // namespace stretto
