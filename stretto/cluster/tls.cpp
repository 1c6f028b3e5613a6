#include "stretto/cluster/tls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "stretto/base/error.h"
#include "stretto/base/wake.h"
#include "stretto/cluster/secret.h"

namespace stretto::cluster {
namespace {

constexpr const char* identity = "stretto";
constexpr size_t buffer_bytes = size_t{256} << 10, first_buffer_bytes = size_t{4} << 10;
constexpr auto linger = std::chrono::seconds(10);  // for the other side of a connection that was closed here
constexpr auto flush_time = std::chrono::seconds(2);  // of flush_tls()

struct Free {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};

const std::string& key_of(const SSL* ssl) { return *static_cast<const std::string*>(SSL_get_app_data(ssl)); }

unsigned int copy_key(const SSL* ssl, unsigned char* key, unsigned int room) {
  const std::string& own = key_of(ssl);
  if (own.size() > room) return 0;
  std::copy(own.begin(), own.end(), key);
  return static_cast<unsigned int>(own.size());
}

unsigned int client_key(SSL* ssl, const char*, char* name, unsigned int name_room, unsigned char* key,
                        unsigned int room) {
  if (std::strlen(identity) + 1 > name_room) return 0;
  std::strcpy(name, identity);
  return copy_key(ssl, key, room);
}

unsigned int server_key(SSL* ssl, const char* name, unsigned char* key, unsigned int room) {
  return std::strcmp(name, identity) == 0 ? copy_key(ssl, key, room) : 0;
}

SSL_CTX* context() {
  static const std::unique_ptr<SSL_CTX, Free> made = [] {
    std::unique_ptr<SSL_CTX, Free> tls(::SSL_CTX_new(::TLS_method()));
    // A pre-shared key belongs to the hash of its cipher.
    const bool good = tls && ::SSL_CTX_set_min_proto_version(tls.get(), TLS1_3_VERSION) == 1 &&
                      ::SSL_CTX_set_ciphersuites(tls.get(), "TLS_AES_128_GCM_SHA256") == 1 &&
                      ::SSL_CTX_set_num_tickets(tls.get(), 0) == 1;
    if (!good) throw IoError("this OpenSSL has no TLS 1.3 with AES-128-GCM");
    ::SSL_CTX_set_psk_client_callback(tls.get(), client_key);
    ::SSL_CTX_set_psk_server_callback(tls.get(), server_key);
    ::SSL_CTX_set_session_cache_mode(tls.get(), SSL_SESS_CACHE_OFF);
    return tls;
  }();
  return made.get();
}

// Bytes that wait for their receiver. Small until grow(), since anyone can open connections.
class Queue {
 public:
  void grow() { bytes_.resize(buffer_bytes); }
  bool empty() const { return begin_ == end_; }
  std::span<char> room() {
    if (bytes_.empty()) bytes_.resize(first_buffer_bytes);
    if (empty()) begin_ = end_ = 0;
    return std::span(bytes_).subspan(end_);
  }
  void add(size_t bytes) { end_ += bytes; }
  std::span<const char> waiting() const { return std::span(bytes_).subspan(begin_, end_ - begin_); }
  void remove(size_t bytes) { begin_ += bytes; }
  void clear() { begin_ = end_; }

 private:
  std::vector<char> bytes_;
  size_t begin_ = 0, end_ = 0;
};

// One connection. Used by one thread at a time.
class Tunnel {
 public:
  Tunnel(Fd wire, const std::string& secret, bool accepts, std::string_view first_bytes)
      : wire_(std::move(wire)), key_(prove(secret, "stretto tls 1.3")), ssl_(::SSL_new(context())) {
    std::array<int, 2> ends;
    if (!ssl_ || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
      throw IoError("cannot encrypt a connection: {}", std::strerror(errno));
    own_end_ = Fd(ends[0]);
    callers_end_ = Fd(ends[1]);
    from_wire_ = ::BIO_new(::BIO_s_mem());
    to_wire_ = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(ssl_.get(), from_wire_, to_wire_);
    SSL_set_app_data(ssl_.get(), &key_);
    accepts ? ::SSL_set_accept_state(ssl_.get()) : ::SSL_set_connect_state(ssl_.get());
    if (!accepts) ::SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);  // no certificate replaces the key
    const auto room = encrypted_.room();
    std::ranges::copy(first_bytes, room.begin());
    encrypted_.add(first_bytes.size());
  }

  Fd take_callers_end() { return std::move(callers_end_); }
  bool open() const { return open_; }  // both sides have shown that they have the key
  bool broken() const { return broken_; }
  // Whether nothing is left to do.
  bool ended() const {
    if (caller_gone_ && (broken_ || !open_ || Clock::now() >= give_up_)) return true;
    if (broken_) return end_delivered_;
    return said_end_ && encrypted_.empty() && (end_delivered_ || (caller_gone_ && wire_ended_));
  }
  // Whether bytes of a caller that has closed its descriptor have yet to be sent.
  bool is_flushing() const { return caller_gone_ && open_ && !broken_ && !(said_end_ && encrypted_.empty()); }

  // The events to wait for.
  pollfd wire_events() const {
    const bool reads = !wire_ended_ && decrypted_.empty();
    const short events = static_cast<short>((reads ? POLLIN : 0) | (encrypted_.empty() ? 0 : POLLOUT));
    return {events != 0 && !broken_ ? wire_.get() : -1, events, 0};
  }
  pollfd caller_events() const {
    const bool reads = open_ && !ended_here_ && encrypted_.empty() && !broken_;
    return {caller_gone_ ? -1 : own_end_.get(),
            static_cast<short>((reads ? POLLIN : 0) | (decrypted_.empty() ? 0 : POLLOUT)), 0};
  }
  void caller_has_gone() {
    if (!caller_gone_) give_up_ = Clock::now() + linger;
    caller_gone_ = true;
  }
  Clock::time_point give_up() const { return caller_gone_ ? give_up_ : Clock::time_point::max(); }

  // Moves what can be moved without waiting; returns whether there was anything.
  bool move() {
    ::ERR_clear_error();
    bool moved = send_encrypted();
    moved |= receive();
    if (!open_ && !broken_) moved |= shake_hands();
    if (open_) {
      moved |= decrypt();
      moved |= encrypt();
    }
    take_from_tls();
    moved |= send_encrypted();
    moved |= deliver();
    return moved;
  }

 private:
  bool send_encrypted() {
    if (encrypted_.empty() || broken_) return false;
    const auto waiting = encrypted_.waiting();
    const ssize_t sent = ::send(wire_.get(), waiting.data(), waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && would_block(errno)) return false;
    if (sent < 0) return fail();
    encrypted_.remove(static_cast<size_t>(sent));
    if (encrypted_.empty() && said_end_ && ::BIO_ctrl_pending(to_wire_) == 0)
      ::shutdown(wire_.get(), SHUT_WR);
    return true;
  }

  bool receive() {
    if (wire_ended_ || broken_ || !decrypted_.empty() || ::BIO_ctrl_pending(from_wire_) > 0) return false;
    std::array<char, size_t{64} << 10> bytes;
    const ssize_t got = ::recv(wire_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && would_block(errno)) return false;
    if (got <= 0) return fail();  // the end of the stream is announced inside of TLS
    ::BIO_write(from_wire_, bytes.data(), static_cast<int>(got));
    return true;
  }

  bool shake_hands() {
    const int result = ::SSL_do_handshake(ssl_.get());
    if (result == 1) {
      if (::SSL_session_reused(ssl_.get()) != 1) return fail();  // without the key
      encrypted_.grow();
      decrypted_.grow();
      return open_ = true;
    }
    const int error = ::SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
    take_from_tls();  // an alert for the other side
    send_encrypted();
    return fail();
  }

  bool decrypt() {
    if (wire_ended_) return false;
    bool moved = false;
    for (auto room = decrypted_.room(); !room.empty(); room = decrypted_.room()) {
      const int got = ::SSL_read(ssl_.get(), room.data(), static_cast<int>(room.size()));
      if (got <= 0) {
        const int error = ::SSL_get_error(ssl_.get(), got);
        if (error == SSL_ERROR_ZERO_RETURN) wire_ended_ = moved = true;
        if (error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL) fail();
        break;
      }
      decrypted_.add(static_cast<size_t>(got));
      moved = true;
    }
    return moved;
  }

  bool encrypt() {
    if (ended_here_ || !encrypted_.empty() || ::BIO_ctrl_pending(to_wire_) > 0 || broken_) return false;
    std::array<char, size_t{128} << 10> bytes;
    const ssize_t got = ::recv(own_end_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && would_block(errno)) return false;
    if (got > 0) return ::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(got)) > 0 || fail();
    ended_here_ = true;
    said_end_ = ::SSL_shutdown(ssl_.get()) >= 0;
    return said_end_ || fail();
  }

  // Moves what TLS has produced to the queue, as far as there is room.
  void take_from_tls() {
    if (!encrypted_.empty()) return;
    const auto room = encrypted_.room();
    const int got = ::BIO_read(to_wire_, room.data(), static_cast<int>(room.size()));
    if (got > 0) encrypted_.add(static_cast<size_t>(got));
  }

  // Hands decrypted bytes to the caller, and then the end of the stream.
  bool deliver() {
    bool moved = false;
    while (!decrypted_.empty() && !caller_gone_) {
      const auto waiting = decrypted_.waiting();
      const ssize_t sent =
          ::send(own_end_.get(), waiting.data(), waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && would_block(errno)) return moved;
      if (sent < 0) {
        caller_has_gone();
        break;
      }
      decrypted_.remove(static_cast<size_t>(sent));
      moved = true;
    }
    if (caller_gone_) decrypted_.clear();
    if ((wire_ended_ || broken_) && decrypted_.empty() && !end_delivered_) {
      ::shutdown(own_end_.get(), broken_ ? SHUT_RDWR : SHUT_WR);
      end_delivered_ = moved = true;
    }
    return moved;
  }

  bool fail() {
    broken_ = true;
    return true;
  }

  Fd wire_, own_end_, callers_end_;
  const std::string key_;
  std::unique_ptr<SSL, Free> ssl_;
  BIO *from_wire_ = nullptr, *to_wire_ = nullptr;  // owned by ssl_
  Queue encrypted_, decrypted_;
  bool open_ = false, broken_ = false;
  bool ended_here_ = false, said_end_ = false;  // the caller has written everything; the other side will know
  bool wire_ended_ = false, end_delivered_ = false;
  bool caller_gone_ = false;  // it has closed its descriptor, or shut down both directions
  Clock::time_point give_up_ = {};
};

// The thread that serves the connections of this process. A process has one, because callers see descriptors
// only, whose lifetime nothing else bounds.
class TunnelThread {
 public:
  static TunnelThread& instance() {
    static TunnelThread thread;
    return thread;
  }
  ~TunnelThread() {
    flush();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.wake();
    thread_.join();
  }
  TunnelThread(const TunnelThread&) = delete;
  TunnelThread& operator=(const TunnelThread&) = delete;

  void add(std::unique_ptr<Tunnel> tunnel) {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(tunnel));
    wake_.wake();
  }

  void flush() {
    std::unique_lock lock(mutex_);
    const uint64_t number = ++flushes_;
    wake_.wake();
    flushed_.wait_for(lock, flush_time, [&] { return finished_flushes_ >= number; });
  }

 private:
  TunnelThread() : context_(context()), thread_([this] { run(); }) {}

  void run() {
    bool busy = false;
    while (true) {
      uint64_t flushes = 0;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        tunnels_.splice(tunnels_.end(), added_);
        flushes = flushes_;
      }
      std::vector<pollfd> watched = {{wake_.fd(), POLLIN, 0}};
      auto until = Clock::time_point::max();
      for (const auto& tunnel : tunnels_) {
        watched.push_back(tunnel->wire_events());
        watched.push_back(tunnel->caller_events());
        until = std::min(until, tunnel->give_up());
      }
      const bool for_ever = until == Clock::time_point::max();
      ::poll(watched.data(), watched.size(), busy ? 0 : for_ever ? -1 : poll_timeout(until));
      const bool woken = watched[0].revents != 0;  // for something that has not been looked at yet
      if (woken) wake_.drain();
      busy = serve(watched) || woken;
      if (!busy) answer_flushes(flushes);
    }
  }

  // Returns whether a connection has more to move.
  bool serve(const std::vector<pollfd>& watched) {
    constexpr int turns = 8;  // before others are served
    bool busy = false;
    size_t index = 1;
    for (auto tunnel = tunnels_.begin(); tunnel != tunnels_.end(); index += 2) {
      if ((watched[index + 1].revents & (POLLHUP | POLLERR)) != 0) (*tunnel)->caller_has_gone();
      int turn = 0;
      while (turn < turns && (*tunnel)->move()) ++turn;
      busy |= turn == turns;
      tunnel = (*tunnel)->ended() ? tunnels_.erase(tunnel) : std::next(tunnel);
    }
    return busy;
  }

  void answer_flushes(uint64_t number) {
    for (const auto& tunnel : tunnels_)
      if (tunnel->is_flushing()) return;
    const std::lock_guard lock(mutex_);
    finished_flushes_ = number;
    flushed_.notify_all();
  }

  SSL_CTX* const context_;  // is made before this object, and so freed after it
  const Wake wake_;
  std::list<std::unique_ptr<Tunnel>> tunnels_;  // used by the thread only
  std::mutex mutex_;
  std::condition_variable flushed_;
  std::list<std::unique_ptr<Tunnel>> added_;
  uint64_t flushes_ = 0, finished_flushes_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

// Whether this process has encrypted a connection.
std::atomic<bool>& used() {
  static std::atomic<bool> any = false;
  return any;
}

Fd serve(std::unique_ptr<Tunnel> tunnel) {
  Fd end = tunnel->take_callers_end();
  used() = true;
  TunnelThread::instance().add(std::move(tunnel));
  return end;
}

}  // namespace

Fd accept_tls(Fd connection, const std::string& secret) {
  return serve(std::make_unique<Tunnel>(std::move(connection), secret, /*accepts=*/true, tls_greeting));
}

Fd connect_tls(Fd connection, const Endpoint& peer, const std::string& secret, Clock::time_point deadline) {
  if (receive_exactly(connection, peer, tls_greeting.size(), deadline) != tls_greeting) {
    throw OneSideEncrypts("{}: the process there does not encrypt its connections, and this one does",
                          peer.text());
  }
  std::unique_ptr<Tunnel> tunnel;
  try {
    tunnel = std::make_unique<Tunnel>(std::move(connection), secret, /*accepts=*/false, "");
  } catch (const IoError& error) {
    throw DistributedError("{}: {}", peer.text(), error.what());
  }
  while (true) {
    while (!tunnel->open() && tunnel->move()) {
    }
    if (tunnel->broken()) {
      throw PeerRefusal(
          "{}: the encryption of this process was refused: its secret (STRETTO_SECRET or STRETTO_SECRET_FILE) is not the job's",
          peer.text());
    }
    if (tunnel->open()) return serve(std::move(tunnel));
    pollfd watched = tunnel->wire_events();
    const int ready = poll_awake({&watched, 1}, deadline);
    if (ready <= 0 && Clock::now() >= deadline)
      throw DistributedError("{}: did not answer in time", peer.text());
  }
}

void require_plain(std::string_view received, const Endpoint& peer) {
  if (!received.starts_with(tls_greeting)) return;
  throw OneSideEncrypts("{}: the process there encrypts its connections, and this one does not", peer.text());
}

void flush_tls() {
  if (used()) TunnelThread::instance().flush();
}

}  // namespace stretto::cluster
