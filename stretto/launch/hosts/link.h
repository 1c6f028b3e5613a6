#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stretto/base/wake.h"
#include "stretto/launch/hosts/meeting.h"

namespace stretto::launch {

// Something that has happened on one host of the job and that all its launchers act on.
struct HostEvent {
  enum class Kind {
    ready,    // it can start its ranks
    failure,  // a rank failed or hangs: `code` is the job's exit code, `text` names rank and host
    lost,     // the host has not been heard of: `node` is that host
    stop,     // a user has asked its launcher to end the job: `code` is the signal
    look,     // it suspects a hang, and asks all hosts for their flight records
    record,   // its flight record is in the store, for look number `code`
    stopped   // all its ranks have ended; `code`: this host's exit code
  };
  Kind kind = Kind::ready;
  int node = 0;  // of whom it is said; the sender's but for `lost`
  int code = 0;
  std::string text = {};
};

// The connection between the launchers of a job, through its store. Events of all hosts form one log, whose order is the same for
// all, so that all launchers take the same decisions. Each start of the ranks has a log of its own. A host that writes no sign of
// life for host_timeout is lost; node 0 watches the others, and they watch whether its store answers.
//
// Two threads do the waiting; the calls of the supervising thread never block.
class HostLink {
 public:
  HostLink(HostMeeting meeting, std::chrono::milliseconds host_timeout);
  // Waits until what was posted is sent and, on node 0, a moment for the others to read it.
  ~HostLink();
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  const HostPlan& plan() const { return meeting_.plan; }
  int node() const { return plan().node_rank; }
  const std::string& secret() const { return meeting_.secret; }
  std::chrono::milliseconds host_timeout() const { return host_timeout_; }

  // Forgets the events of the last start of the ranks and announces that this host is ready for number `life`. REQUIRES: the last
  // one is over().
  void begin(int life);

  // Logs that SIGTSTP has no effect on a job of several hosts: the others would lose this host.
  void refuse_pause() const;

  int fd() const { return wake_.fd(); }  // readable when next() returns an event
  std::optional<HostEvent> next();
  void post(HostEvent event);  // `node` is filled in

  // All hosts have stopped, or are lost: no event follows.
  bool over() const;

  // Leaves a text for node 0, replacing that which this host left under this name, before the events that are posted later. Node 0
  // reads it. begin() removes "record".
  void leave(const std::string& name, std::string text);
  std::optional<std::string> left_by(int node, const std::string& name);

 private:
  struct Outgoing {
    std::optional<HostEvent> event;
    std::string key, value;
  };
  void read_log(int life);
  void write_and_watch();
  void send(const Outgoing& outgoing);
  void append(const HostEvent& event);
  void watch_others();
  void deliver(const HostEvent& event);
  bool is_expected(int other) const;
  void lose_master(const std::string& why);
  static std::string left_key(int node, const std::string& name);
  std::string event_key(int life, int number) const;

  HostMeeting meeting_;
  std::chrono::milliseconds host_timeout_;
  Wake wake_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_writer_;
  std::deque<HostEvent> events_;
  std::deque<Outgoing> outgoing_;
  int life_ = -1;
  std::vector<bool> stopped_, lost_;  // by node
  bool broken_ = false;               // node 0 is lost, or this link ends
  bool ending_ = false;

  int next_number_ = 0;  // the writer's: where its next event may go
  int writing_life_ = -1;
  struct Beat {
    int64_t count = -1;
    cluster::Clock::time_point changed = {};
    bool ended = false, reported = false;
  };
  std::vector<Beat> beats_;  // the writer's, on node 0
  cluster::Clock::time_point last_watch_ = {};
  int64_t ended_ = 0;
  std::thread reader_, writer_;
};

}  // namespace stretto::launch
