#include "stretto/cluster/store_server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/wake.h"
#include "stretto/cluster/pause_watch.h"
#include "stretto/cluster/store_connection.h"
#include "stretto/cluster/tls.h"

namespace stretto::cluster {

// The loop of the server's thread: one poll() over the listener and all connections.
class StoreServer::Loop {
 public:
  Loop(Fd listener, std::string secret, StoreServerOptions options)
      : listener_(std::move(listener)), secret_(std::move(secret)), options_(options) {
    if (::listen(listener_.get(), SOMAXCONN) != 0) throw IoError("cannot listen: {}", std::strerror(errno));
  }

  size_t connections() const { return open_; }
  std::string unproved_hosts() const { return refusals_.unproved_hosts(); }

  void stop() { stop_.wake(); }

  void run() {
    PauseWatch pauses;
    while (true) {
      std::vector<pollfd> watched = {{stop_.fd(), POLLIN, 0},
                                     {accepting() ? listener_.get() : -1, POLLIN, 0}};
      for (const auto& connection : connections_)
        watched.push_back({connection->fd(), connection->events(), 0});
      ::poll(watched.data(), watched.size(), timeout());
      if (watched[0].revents != 0) return;
      const auto away = pauses.look();  // has no effect if no connection has a deadline
      for (const auto& connection : connections_) connection->postpone(away);

      for (size_t i = 2; i < watched.size(); ++i) {
        if (watched[i].revents != 0) connections_[i - 2]->serve(watched[i].revents, table_);
      }
      for (const auto& connection : connections_) {
        if (connection->closed()) connection->settle(table_);
      }
      // Any request answered may have set the key that another connection waits for.
      for (bool answered = true; answered;) {
        answered = false;
        for (const auto& connection : connections_) answered |= connection->retry(table_);
      }
      std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
      if (watched[1].revents != 0) accept_one();
      open_ = connections_.size();
    }
  }

 private:
  // After the system had no descriptors or memory for a connection.
  static constexpr auto shortage_pause = std::chrono::milliseconds(100);

  bool accepting() const {
    const bool room = connections_.size() < options_.max_connections || oldest_unproved() != nullptr;
    return room && Clock::now() >= accept_from_;
  }

  // Connections are in the order in which they were accepted.
  StoreConnection* oldest_unproved() const {
    for (const auto& connection : connections_) {
      if (!connection->proved()) return connection.get();
    }
    return nullptr;
  }

  int timeout() const {
    auto first = Clock::time_point::max();
    for (const auto& connection : connections_) first = std::min(first, connection->deadline());
    if (accept_from_ > Clock::now()) first = std::min(first, accept_from_);
    if (first == Clock::time_point::max()) return -1;
    return poll_timeout(std::min(first, Clock::now() + PauseWatch::longest_sleep));
  }

  void accept_one() {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const auto user = socket ? peer_user(socket) : std::nullopt;
    if (user && *user != ::geteuid()) {
      refusals_.add(fmt::format("a process of user {}", *user), "only this user's processes may connect");
    } else if (socket) {
      if (connections_.size() >= options_.max_connections) make_room();
      set_no_delay(socket);
      add(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The client stays in the queue, so poll() would report it again at once.
      accept_from_ = Clock::now() + shortage_pause;
    }
  }

  void add(Fd socket) {
    const auto deadline = Clock::now() + options_.greeting_timeout;
    const std::string peer = peer_text(socket);
    try {
      if (options_.encrypt) socket = accept_tls(std::move(socket), secret_);
      connections_.push_back(
          std::make_unique<StoreConnection>(std::move(socket), peer, secret_, deadline, refusals_));
    } catch (const IoError& error) {  // encryption takes further descriptors
      refusals_.add(peer, error.what());
      accept_from_ = Clock::now() + shortage_pause;
    }
  }

  void make_room() {
    StoreConnection* oldest = oldest_unproved();
    if (oldest == nullptr) return;
    oldest->drop("it had not authenticated when others needed the connection");
    std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
  }

  Fd listener_;
  std::string secret_;
  StoreServerOptions options_;
  Wake stop_;
  Clock::time_point accept_from_{};
  StoreTable table_{options_.limits};
  RefusalLog refusals_;
  std::vector<std::unique_ptr<StoreConnection>> connections_;
  std::atomic<size_t> open_ = 0;  // connections, for other threads
};

StoreServer::StoreServer(Fd bound, std::string secret, StoreServerOptions options) {
  if (secret.empty()) throw ConfigError("store: the secret is empty, so that anyone could connect; set one");
  ::fcntl(bound.get(), F_SETFL, O_NONBLOCK);  // a client may leave between poll() and accept()
  endpoint_ = bound_endpoint(bound);
  loop_ = std::make_unique<Loop>(std::move(bound), std::move(secret), options);
  thread_ = std::thread([this] { loop_->run(); });
}

std::string StoreServer::unproved_hosts() const { return loop_->unproved_hosts(); }

void StoreServer::wait_until_unused(std::chrono::milliseconds at_most) const {
  const auto deadline = Clock::now() + at_most;
  while (loop_->connections() > 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

StoreServer::~StoreServer() {
  loop_->stop();
  thread_.join();
  loop_.reset();
  flush_tls();
}

}  // namespace stretto::cluster
