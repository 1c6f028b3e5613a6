#include "stretto/cluster/store_connection.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "stretto/cluster/secret.h"

namespace stretto::cluster {
namespace {

constexpr size_t max_at_end = 16;

}  // namespace

StoreConnection::StoreConnection(Fd socket, std::string peer, const std::string& secret,
                                 Clock::time_point deadline, RefusalLog& refusals)
    : socket_(std::move(socket)), refusals_(&refusals), peer_(std::move(peer)), deadline_(deadline) {
  const std::string nonce = random_bytes(nonce_bytes);
  expected_proof_ = prove(secret, nonce);
  out_ = std::string(store_greeting) + nonce;
  flush();
}

short StoreConnection::events() const {
  if (!out_.empty()) return POLLOUT;
  return phase_ == Phase::waiting ? POLLRDHUP : POLLIN;
}

Clock::time_point StoreConnection::deadline() const {
  return phase_ == Phase::ready ? Clock::time_point::max() : deadline_;
}

void StoreConnection::serve(short events, StoreTable& table) {
  const bool ended = (events & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  if (ended || (phase_ == Phase::waiting && (events & POLLRDHUP) != 0)) {
    socket_.reset();
    return;
  }
  if ((events & POLLOUT) != 0) flush();
  if ((events & POLLIN) != 0) receive();
  if (phase_ == Phase::greeting) check_proof();
  answer_requests(table);
}

bool StoreConnection::retry(StoreTable& table) {
  if (closed() || phase_ == Phase::ready) return false;
  const bool late = Clock::now() >= deadline_;
  if (phase_ == Phase::greeting) {
    if (late) drop("it did not authenticate in time");
    return false;
  }
  try_answer(table);
  if (phase_ == Phase::waiting && late) {
    phase_ = Phase::ready;
    reply({.status = Status::timed_out});
  }
  const bool answered = phase_ == Phase::ready;
  answer_requests(table);
  return answered;
}

// Reads only the proof until the client has authenticated, so that unauthenticated clients use almost no
// memory.
void StoreConnection::receive() {
  char chunk[size_t{64} << 10];
  const size_t wanted = phase_ == Phase::greeting ? proof_bytes - in_.size() : sizeof chunk;
  const ssize_t got = ::recv(socket_.get(), chunk, wanted, 0);
  if (got > 0) {
    in_.append(chunk, static_cast<size_t>(got));
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    socket_.reset();
  }
}

void StoreConnection::check_proof() {
  if (closed() || in_.size() < proof_bytes) return;
  if (!equal_in_constant_time(in_, expected_proof_)) {
    out_.assign(1, store_refused);
    flush();
    return drop("it does not have the job's secret");
  }
  in_.clear();
  phase_ = Phase::ready;
  refusals_->proved(peer_);
  out_.assign(1, store_accepted);
  flush();
}

void StoreConnection::answer_requests(StoreTable& table) {
  while (!closed() && phase_ == Phase::ready && out_.empty() && in_.size() >= frame_header_bytes) {
    const size_t size = payload_bytes(in_);
    if (size > max_payload_bytes) return drop(fmt::format("it announced a request of {} bytes", size));
    if (in_.size() < frame_header_bytes + size) return;
    auto request = decode_request(std::string_view(in_).substr(frame_header_bytes, size));
    if (!request) return drop("it sent a malformed request");
    in_.erase(0, frame_header_bytes + size);

    request_ = std::move(*request);
    if (request_.operation == Operation::add_at_end) {
      if (at_end_.size() + request_.keys.size() > max_at_end)
        return drop("it asked for too many additions at its end");
      for (const std::string& key : request_.keys)
        at_end_.push_back({.operation = Operation::add, .keys = {key}, .number = request_.number});
      reply({});
      continue;
    }
    phase_ = Phase::waiting;
    deadline_ = Clock::now() + wait_time(request_);
    try_answer(table);
  }
}

void StoreConnection::try_answer(StoreTable& table) {
  const auto answer = table.answer(request_);
  if (!answer) return;
  phase_ = Phase::ready;
  reply(*answer);
}

void StoreConnection::settle(StoreTable& table) {
  if (!proved()) refusals_->ended_unproved(peer_, end_);
  for (const Request& request : at_end_) table.answer(request);
  at_end_.clear();
}

void StoreConnection::reply(const Reply& reply) {
  out_ += encode(reply);
  flush();
}

void StoreConnection::flush() {
  while (!closed() && !out_.empty()) {
    const ssize_t sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      out_.erase(0, static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      socket_.reset();
    }
  }
}

void StoreConnection::drop(const std::string& reason) {
  refusals_->add(peer_, reason);
  end_ = reason;
  socket_.reset();
}

}  // namespace stretto::cluster
