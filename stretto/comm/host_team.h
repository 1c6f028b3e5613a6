#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "stretto/base/fd.h"
#include "stretto/comm/group.h"
#include "stretto/comm/shared_control.h"
#include "stretto/comm/shared_segment.h"

namespace stretto::comm {

// The ranks of a group that run on this rank's host, numbered by their position in the team, 0 .. size() - 1,
// in the order of their ranks.
class HostTeam {
 public:
  struct Peer {
    int rank = 0;  // in the job, for messages
    pid_t process = 0;
    Fd life = Fd();  // readable once the process has ended; none for ranks of this process
    std::unique_ptr<SharedMapping> mapping = nullptr;  // none for this rank itself
    std::byte* data = nullptr;                         // the address of its segment
    size_t size = 0;                                   // of the segment

    // Whether these bytes of its segment exist. Offsets that another rank has written must pass this before
    // use.
    bool holds(uint64_t offset, uint64_t bytes) const { return offset <= size && bytes <= size - offset; }
  };
  // `world_ranks`: GroupOptions::world_ranks.
  HostTeam(std::shared_ptr<SharedSegment> own, std::vector<Peer> peers, int me, bool crowded,
           std::vector<int> world_ranks);

  // Announces to the others that this rank has left, or that an exception has destroyed its group.
  ~HostTeam();
  HostTeam(HostTeam&&) = default;

  int size() const { return static_cast<int>(peers_.size()); }
  int me() const { return me_; }
  const Peer& peer(int position) const { return peers_[static_cast<size_t>(position)]; }
  const std::vector<int>& world_ranks() const { return world_ranks_; }
  SharedControl& control(int position) const {
    return *reinterpret_cast<SharedControl*>(peer(position).data);
  }
  const std::shared_ptr<SharedSegment>& segment() const { return own_; }

  // Whether there are more ranks than cores that they may run on, so that waiting ranks should sleep.
  bool crowded() const { return crowded_; }

  // Why a peer no longer participates: "rank 1 (process 123) has ended"; "" while it does. Its earlier
  // announcements stay readable.
  std::string absence(int position) const;

  // Returns shortly after the process of an absent peer has ended, or after a time limit, so that a
  // supervisor of the ranks sees the rank that failed first end first.
  void await_end(int position) const;

  // Announces why this rank ends the group.
  void report_failure(const std::string& why);

 private:
  std::shared_ptr<SharedSegment> own_;
  std::vector<Peer> peers_;
  int me_;
  bool crowded_;
  std::vector<int> world_ranks_;
  int exceptions_ = std::uncaught_exceptions();  // at construction
};

// An identifier of this host: equal for processes of one boot that see the same process ids. Throws IoError.
std::string this_host();

// The hosts of the ranks of a group.
struct Hosts {
  std::vector<std::vector<int>> ranks;  // of each host, ascending; hosts in the order of their first rank
  size_t own = 0;
  std::unique_ptr<HostTeam> team;  // this host's
  std::string refusal;             // why no host has a team
};

// Exchanges hosts with the group's other ranks through the store, and maps the segments of this host's ranks.
// The first `room` bytes of a segment belong to the caller; they are zeroed and begin with a SharedControl.
// Throws what the store throws, and DistributedError for values in the store that no rank writes. Collective.
Hosts exchange_hosts(c10d::Store& store, int rank, int size, const GroupOptions& options, size_t room);

}  // namespace stretto::comm
