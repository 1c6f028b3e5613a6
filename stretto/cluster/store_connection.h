#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stretto/base/fd.h"
#include "stretto/cluster/refusal_log.h"
#include "stretto/cluster/socket.h"
#include "stretto/cluster/store_table.h"

namespace stretto::cluster {

// One client of the store server, from its greeting to its end. Owned by the server's thread; never blocks.
//
//   greeting --right proof--> ready <--reply-- waiting (for keys of a get or a wait)
//       |                       |  --------------->
//       +--wrong, silent--> closed <-- malformed frame, end of the connection
class StoreConnection {
 public:
  // Sends the greeting; the client, whose address is `peer`, must authenticate by `deadline`. REQUIRES:
  // `refusals` outlives it.
  StoreConnection(Fd socket, std::string peer, const std::string& secret, Clock::time_point deadline,
                  RefusalLog& refusals);

  int fd() const { return socket_.get(); }
  bool closed() const { return !socket_; }
  bool proved() const { return phase_ != Phase::greeting; }
  short events() const;                // the events for poll()
  Clock::time_point deadline() const;  // when retry() is due without an event
  void postpone(Clock::duration time) { deadline_ += time; }

  // Handles the events that poll() returned.
  void serve(short events, StoreTable& table);

  // Answers a waiting client whose keys now exist or whose time is up; drops one that has not authenticated
  // in time. Returns whether it answered: queued requests of the client may have changed the table.
  bool retry(StoreTable& table);

  // Performs the additions that the client requested for the end of its connection, and notes one that has
  // not authenticated. REQUIRES: closed().
  void settle(StoreTable& table);

  // Closes the connection, with a warning that names the peer and the reason.
  void drop(const std::string& reason);

 private:
  enum class Phase { greeting, ready, waiting };

  void receive();
  void check_proof();
  void answer_requests(StoreTable& table);
  void try_answer(StoreTable& table);
  void reply(const Reply& reply);
  void flush();

  Fd socket_;
  RefusalLog* refusals_;
  std::string end_ = "it ended the connection before it authenticated";  // unless drop() sets another reason
  std::string peer_;
  std::string expected_proof_;
  Phase phase_ = Phase::greeting;
  Clock::time_point deadline_;
  std::string in_;   // received, not yet decoded
  std::string out_;  // to be sent; no further request is read until it is empty
  Request request_;  // of the waiting client
  std::vector<Request> at_end_;
};

}  // namespace stretto::cluster
