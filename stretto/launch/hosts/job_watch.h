#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/launch/diagnosis/flight_record.h"
#include "stretto/launch/hosts/link.h"

namespace stretto::launch {

// Interprets the events of a job on several hosts for the launcher of one of them, during one start of the
// ranks.
class JobWatch {
 public:
  // `hang_limit` and `own_program`: see diagnose_hang().
  JobWatch(HostLink& link, std::chrono::milliseconds hang_limit, bool own_program)
      : link_(link), hang_limit_(hang_limit), own_program_(own_program), codes_(link.plan().hosts.size()) {}

  // The next event on which this launcher must act: the first failure, or one that explains it (`failure` or
  // `lost`, with its exit code); a user's request to end the job (`stop`); a request for this host's flight
  // record (`look`, with its number as code).
  std::optional<HostEvent> next();

  // Announces a failure on this host, with its record, after `delay`, unless another host announces one
  // first. `text` names rank and host.
  void report(int exit_code, const std::string& text, const FlightRecord& record,
              cluster::Clock::duration delay = {});
  void send_due();         // announces failures whose delay has passed
  void ask_for_records();  // call it if a rank of this host may hang
  void send_record(int look, const FlightRecord& record);
  void stopped(int exit_code);  // all ranks of this host have ended; only the first call has an effect

  const std::optional<HostEvent>& failure() const { return failure_; }
  bool host_lost() const { return host_lost_; }
  // The job's exit code: that of the first failure, else that of the first host with a nonzero one. REQUIRES:
  // link.over().
  int exit_code() const;
  // The merged record of all hosts, with this host's record `own`. REQUIRES: this is node 0, and link.over().
  FlightRecord record_of_all(FlightRecord own);

 private:
  bool take_failure(const HostEvent& event);
  void take_record(int look);

  HostLink& link_;
  std::chrono::milliseconds hang_limit_;
  bool own_program_;
  struct Held {
    cluster::Clock::time_point due;
    HostEvent event;
    std::string record;
  };
  std::optional<Held> held_;  // a failure of this host that is not announced yet
  bool announced_end_ = false;
  std::optional<HostEvent> failure_;
  bool host_lost_ = false;
  std::vector<int> codes_;         // exit codes of the hosts that have stopped
  std::map<int, size_t> records_;  // number of hosts that have answered, by look
  int looks_ = 0;                  // numbered in the order of the log: the same on all hosts
  cluster::Clock::time_point next_look_ = {};
};

}  // namespace stretto::launch
