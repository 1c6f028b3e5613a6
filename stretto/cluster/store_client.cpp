#include "stretto/cluster/store_client.h"

#include <algorithm>

#include "stretto/cluster/secret.h"
#include "stretto/cluster/tls.h"

namespace stretto::cluster {
namespace {

std::string quoted(const std::vector<std::string>& keys) {
  constexpr size_t shown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(keys.size(), shown); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", keys[i]);
  }
  if (keys.size() > shown) text += fmt::format(" and {} more", keys.size() - shown);
  return text;
}

}  // namespace

StoreClient::StoreClient(Endpoint server, std::string secret, StoreClientOptions options)
    : server_(std::move(server)), secret_(std::move(secret)), options_(options) {
  idle_.push_back(connect());
}

void StoreClient::set(const std::string& key, std::string_view value) {
  exchange({.operation = Operation::set, .keys = {key}, .value = std::string(value)});
}

std::string StoreClient::get(const std::string& key, std::chrono::milliseconds timeout) {
  return exchange({.operation = Operation::get, .keys = {key}, .number = timeout.count()}).value;
}

int64_t StoreClient::add(const std::string& key, int64_t summand) {
  return exchange({.operation = Operation::add, .keys = {key}, .number = summand}).number;
}

void StoreClient::add_at_end(const std::vector<std::string>& keys, int64_t summand) {
  const Request request = {.operation = Operation::add_at_end, .keys = keys, .number = summand};
  Fd connection = connect();
  exchange_on(connection, request, encode(request));
  const std::lock_guard lock(mutex_);
  held_.push_back(std::move(connection));
}

bool StoreClient::check(const std::vector<std::string>& keys) {
  try {
    wait(keys, std::chrono::milliseconds(0));
    return true;
  } catch (const StoreTimeout&) {
    return false;
  }
}

void StoreClient::wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
  exchange({.operation = Operation::wait, .keys = keys, .number = timeout.count()});
}

std::string StoreClient::compare_set(const std::string& key, std::string_view expected,
                                     std::string_view desired) {
  return exchange({.operation = Operation::compare_set,
                   .keys = {key},
                   .value = std::string(desired),
                   .expected = std::string(expected)})
      .value;
}

bool StoreClient::remove(const std::string& key) {
  return exchange({.operation = Operation::remove, .keys = {key}}).number != 0;
}

// A connection is reused only after a whole reply; one that failed is closed.
Reply StoreClient::exchange(const Request& request) {
  const std::string frame = encode(request);
  Fd connection = take_connection();
  Reply reply;
  try {
    reply = exchange_on(connection, request, frame);
  } catch (const DistributedError& error) {
    throw DistributedError("the rendezvous store at {} (keys: {}); it runs in {}, which may have ended",
                           error.what(), quoted(request.keys), options_.host_process);
  }
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  if (reply.status == Status::timed_out) {
    throw StoreTimeout(
        "the rendezvous store at {}: {} ms have passed without {}; the rank that sets it is late or has ended",
        server_.text(), request.number, quoted(request.keys));
  }
  if (reply.status == Status::refused) {
    throw DistributedError("the rendezvous store at {}: key {}: {}", server_.text(), quoted(request.keys),
                           reply.value);
  }
  return reply;
}

Reply StoreClient::exchange_on(const Fd& socket, const Request& request, const std::string& frame) {
  const auto deadline = Clock::now() + wait_time(request) + options_.answer_timeout;
  send_all(socket, server_, frame, deadline);
  const size_t size = payload_bytes(receive_exactly(socket, server_, frame_header_bytes, deadline));
  if (size > max_payload_bytes)
    throw DistributedError("{}: announced a reply of {} bytes", server_.text(), size);
  const auto reply = decode_reply(receive_exactly(socket, server_, size, deadline));
  if (!reply) throw DistributedError("{}: sent a malformed reply", server_.text());
  return *reply;
}

Fd StoreClient::take_connection() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Fd connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return connect();
}

Fd StoreClient::connect() {
  const auto deadline = Clock::now() + options_.connect_timeout;
  Fd socket = connect_socket(server_, deadline);
  if (options_.encrypt) socket = connect_tls(std::move(socket), server_, secret_, deadline);
  std::string greeting = receive_exactly(socket, server_, tls_greeting.size(), deadline);
  require_plain(greeting, server_);
  greeting +=
      receive_exactly(socket, server_, store_greeting.size() + nonce_bytes - greeting.size(), deadline);
  if (!greeting.starts_with(store_greeting)) {
    throw DistributedError("{}: this is not a rendezvous store of this version of stretto", server_.text());
  }
  send_all(socket, server_, prove(secret_, greeting.substr(store_greeting.size())), deadline);
  if (receive_exactly(socket, server_, 1, deadline)[0] != store_accepted) {
    throw DistributedError(
        "the rendezvous store at {} refused this process: its secret (STRETTO_SECRET or STRETTO_SECRET_FILE) is not the job's",
        server_.text());
  }
  return socket;
}

}  // namespace stretto::cluster
