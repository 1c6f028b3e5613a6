#include "tests/fuzz/fuzz.h"
#include <poll.h>
#include <sys/socket.h>

#include "stretto/cluster/secret.h"
#include "stretto/cluster/store_connection.h"

// Input: requests of an authenticated client to the rendezvous store, and replies of a server to a client.
namespace stretto::fuzz {
namespace {

using namespace cluster;

std::string bytes_of(const Request& request) { return encode(request); }

// A connection past its greeting reads these bytes.
void serve(const std::string& sent) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
  const Fd client(ends[1]);
  StoreTable table({.keys = 8, .bytes = 4096});
  RefusalLog refusals;
  StoreConnection connection(Fd(ends[0]), "a peer", "secret", Clock::now() + std::chrono::minutes(1),
                             refusals);
  char received[4096];
  const ssize_t greeted = ::recv(client.get(), received, sizeof received, 0);
  const std::string_view greeting(received, static_cast<size_t>(greeted));
  std::string bytes = prove("secret", greeting.substr(store_greeting.size())) + sent;
  while (!connection.closed()) {
    const ssize_t written =
        bytes.empty() ? 0 : ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written > 0) bytes.erase(0, static_cast<size_t>(written));
    const size_t left = bytes.size();
    connection.serve(POLLIN | POLLOUT, table);
    connection.retry(table);
    const ssize_t answered = ::recv(client.get(), received, sizeof received, 0);
    if (left == 0 && answered <= 0) break;
  }
}

}  // namespace

std::vector<std::string> seeds() {
  return {bytes_of({.operation = Operation::set, .keys = {"key"}, .value = "value"}),
          bytes_of({.operation = Operation::get, .keys = {"key"}, .number = 5}),
          bytes_of({.operation = Operation::add, .keys = {"n"}, .number = -3}),
          bytes_of({.operation = Operation::wait, .keys = {"a", "b", "c"}, .number = 1}),
          bytes_of({.operation = Operation::compare_set, .keys = {"k"}, .value = "new", .expected = "old"}),
          bytes_of({.operation = Operation::remove, .keys = {"key"}}),
          bytes_of({.operation = Operation::set, .keys = {"n"}, .value = "7"}) +
              bytes_of({.operation = Operation::add, .keys = {"n"}, .number = 1}) +
              bytes_of({.operation = Operation::get, .keys = {"n"}, .number = 0}),
          encode(Reply{.status = Status::refused, .number = 1, .value = "full"})};
}

void run(const std::string& input) {
  const std::string_view payload = std::string_view(input).substr(std::min(input.size(), frame_header_bytes));
  if (const auto request = decode_request(payload)) {
    require(encode(*request).substr(frame_header_bytes) == payload, "a request is written as it was read");
    StoreTable table({.keys = 8, .bytes = 4096});
    table.answer(*request);
    table.answer(*request);
  }
  if (const auto reply = decode_reply(payload))
    require(encode(*reply).substr(frame_header_bytes) == payload, "a reply is written as it was read");
  serve(input);
}

}  // namespace stretto::fuzz
