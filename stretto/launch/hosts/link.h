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

// An event on one host of the job, on which all launchers act.
struct HostEvent {
  enum class Kind {
    ready,    // it can start its ranks
    failure,  // a rank failed or hangs: `code` is the job's exit code, `text` names rank and host
    lost,     // node `node` has sent no heartbeat
    stop,     // a user has asked its launcher to end the job: `code` is the signal
    look,     // it suspects a hang, and asks all hosts for their flight records
    record,   // its flight record is in the store, for look number `code`
    stopped   // all its ranks have ended; `code`: this host's exit code
  };
  Kind kind = Kind::ready;
  int node = 0;  // the node that the event concerns: the sender, except for `lost`
  int code = 0;
  std::string text = {};
};

// The connection between the launchers of a job, through its store. The events of all hosts form one log in
// one order, so that all launchers take the same decisions. Each start of the ranks has its own log. A host
// that writes no heartbeat for host_timeout is lost; node 0 watches the others, and they watch whether its
// store answers.
//
// Two threads wait for the store; the calls of the supervising thread never block.
class HostLink {
 public:
  HostLink(HostMeeting meeting, std::chrono::milliseconds host_timeout);
  // Waits until posted events are sent and, on node 0, a moment for the others to read them.
  ~HostLink();
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  const HostPlan& plan() const { return meeting_.plan; }
  int node() const { return plan().node_rank; }
  const std::string& secret() const { return meeting_.secret; }
  std::chrono::milliseconds host_timeout() const { return host_timeout_; }

  // Discards the events of the last start of the ranks, except the loss of node 0, and announces that this
  // host is ready for start number `life`. REQUIRES: over(), except at the first call.
  void begin(int life);

  // Logs that SIGTSTP has no effect on a job of several hosts: the others would lose this host.
  void refuse_pause() const;

  int fd() const { return wake_.fd(); }  // readable when next() returns an event
  std::optional<HostEvent> next();
  void post(HostEvent event);  // `node` is filled in

  // Whether all hosts have stopped or are lost, so that no event follows.
  bool over() const;

  // Publishes a text for node 0 under `name`, replacing an earlier one of this host, before any event that is
  // posted later. begin() removes "record".
  void publish(const std::string& name, std::string text);
  std::optional<std::string> published_by(int node, const std::string& name);

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
  void add(const HostEvent& event);
  bool is_expected(int other) const;
  void lose_master(const std::string& why);
  static std::string published_key(int node, const std::string& name);
  std::string event_key(int life, int number) const;

  HostMeeting meeting_;
  std::chrono::milliseconds host_timeout_;
  Wake wake_;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable wake_writer_;
  std::deque<HostEvent> events_;
  std::deque<Outgoing> outgoing_;
  int life_ = -1;
  std::vector<bool> stopped_, lost_;      // by node
  std::optional<HostEvent> master_lost_;  // set once node 0 is lost: no event follows, in any start
  bool ending_ = false;

  int next_number_ = 0;  // used by the writer: the first number that may be free for its next event
  int writing_life_ = -1;
  struct Beat {
    int64_t count = -1;
    cluster::Clock::time_point changed = {};
    bool ended = false, reported = false;
  };
  std::vector<Beat> beats_;  // used by the writer, on node 0
  cluster::Clock::time_point last_watch_ = {};
  int64_t ended_ = 0;
  std::thread reader_, writer_;
};

}  // namespace stretto::launch
