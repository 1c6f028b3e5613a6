#include <algorithm>
#include <future>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "stretto/base/message_support.h"
#include "stretto/cluster/refusal_log.h"
#include "stretto/cluster/secret.h"
#include "stretto/cluster/store_client.h"
#include "stretto/cluster/store_server.h"

// Client and server over real sockets.
namespace stretto::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const Endpoint local{"127.0.0.1", 0};

// Whether the server closes the connection within half a minute.
bool is_closed(const Fd& socket) {
  const auto deadline = Clock::now() + 30s;
  char byte;
  while (Clock::now() < deadline) {
    pollfd watched{socket.get(), POLLIN, 0};
    ::poll(&watched, 1, 100);
    const ssize_t got = ::recv(socket.get(), &byte, 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
  }
  return false;
}

class Store : public ::testing::Test {
 protected:
  StoreServer server_{bind_socket(local), "secret", {.max_connections = 64}};

  StoreClient client(const std::string& secret = "secret") {
    return {server_.endpoint(), secret, {.connect_timeout = 5s}};
  }

  // Returns a connection that has read the greeting, and the nonce.
  std::pair<Fd, std::string> greeted() {
    Fd socket = connect_socket(server_.endpoint(), Clock::now() + 5s);
    const std::string greeting = receive(socket, store_greeting.size() + nonce_bytes);
    return {std::move(socket), greeting.substr(store_greeting.size())};
  }
  Fd admitted() {
    auto [socket, nonce] = greeted();
    send(socket, prove("secret", nonce));
    EXPECT_EQ(receive(socket, 1)[0], store_accepted);
    return std::move(socket);
  }
  void send(const Fd& socket, const std::string& bytes) {
    send_all(socket, server_.endpoint(), bytes, Clock::now() + 5s);
  }
  std::string receive(const Fd& socket, size_t bytes) {
    return receive_exactly(socket, server_.endpoint(), bytes, Clock::now() + 5s);
  }
};

TEST_F(Store, TwoClientsShareOneTable) {
  StoreClient a = client(), b = client();
  const std::string bytes("\0\xff\n", 3);
  a.set("k", bytes);
  EXPECT_EQ(b.get("k", 5s), bytes);
  EXPECT_TRUE(b.check({"k"}));
  EXPECT_FALSE(b.check({"k", "other"}));
  EXPECT_EQ(b.compare_set("k", bytes, "new"), "new");
  EXPECT_EQ(a.compare_set("k", bytes, "newer"), "new");
  EXPECT_EQ(a.add("n", 5), 5);
  EXPECT_EQ(b.add("n", -7), -2);
  EXPECT_EQ(a.get("n", 5s), "-2");
  EXPECT_TRUE(a.remove("k"));
  EXPECT_FALSE(b.remove("k"));
  EXPECT_FALSE(b.check({"k"}));
  a.wait({}, 0ms);
}

TEST_F(Store, TheLargestValueIsAccepted) {
  const std::string value(max_value_bytes, 'v');
  StoreClient a = client();
  a.set("k", value);
  EXPECT_EQ(a.get("k", 5s), value);
  EXPECT_EQ(a.compare_set("k", value, value), value);
  EXPECT_THROW(a.set("k", value + "v"), DistributedError);
  EXPECT_EQ(a.add("still", 1), 1);
}

TEST_F(Store, GetWaitsForAnother) {
  StoreClient a = client(), b = client();
  auto value = std::async(std::launch::async, [&] { return a.get("late", 20s); });
  auto both = std::async(std::launch::async, [&] { a.wait({"late", "later"}, 20s); });
  EXPECT_EQ(value.wait_for(100ms), std::future_status::timeout);
  b.set("late", "here");
  EXPECT_EQ(value.get(), "here");
  EXPECT_EQ(both.wait_for(50ms), std::future_status::timeout);
  b.add("later", 1);
  both.get();
}

TEST_F(Store, AWaitingThreadDoesNotBlockOthersOfTheClient) {
  StoreClient a = client();
  auto value = std::async(std::launch::async, [&] { return a.get("k", 20s); });
  EXPECT_EQ(value.wait_for(50ms), std::future_status::timeout);
  a.set("k", "value");
  EXPECT_EQ(value.get(), "value");
}

TEST_F(Store, AddFromManyThreadsLosesNothing) {
  StoreClient shared = client();
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      StoreClient own = client();
      for (int j = 0; j < 100; ++j) (i % 2 == 0 ? shared : own).add("n", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.get("n", 5s), "800");
}

TEST_F(Store, WaitTimesOutAndTheClientStaysUsable) {
  StoreClient a = client();
  const auto begin = Clock::now();
  EXPECT_THAT(message_of<StoreTimeout>([&] { a.get("never", 150ms); }),
              AllOf(HasSubstr("150 ms have passed without \"never\""), HasSubstr("127.0.0.1:")));
  EXPECT_GE(Clock::now() - begin, 150ms);
  EXPECT_THROW(a.wait({"never"}, 0ms), StoreTimeout);
  EXPECT_EQ(a.add("n", 1), 1);
}

TEST_F(Store, AddingToATextIsAnError) {
  StoreClient a = client();
  a.set("k", "many");
  EXPECT_THAT(message_of<DistributedError>([&] { a.add("k", 1); }),
              has_all("key \"k\": ", "\"many\"", "1 cannot be added"));
}

TEST_F(Store, WrongSecretIsRefusedAndLogged) {
  ::testing::internal::CaptureStderr();
  std::string message;
  try {
    client("wrong");
  } catch (const DistributedError& error) {
    message = error.what();
  }
  EXPECT_THAT(message, HasSubstr("refused this process: its secret"));
  EXPECT_EQ(client().add("n", 1), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("does not have the job's secret"));
}

TEST_F(Store, NothingIsReadBeforeAuthentication) {
  auto [socket, nonce] = greeted();
  send(socket, std::string(proof_bytes, 'x') + encode(Request{.keys = {"k"}, .value = "v"}));
  EXPECT_TRUE(is_closed(socket));
  EXPECT_FALSE(client().check({"k"}));
}

TEST_F(Store, AProofIsValidForItsConnectionOnly) {
  auto [first, nonce] = greeted();
  auto [second, other_nonce] = greeted();
  EXPECT_NE(nonce, other_nonce);
  send(second, prove("secret", nonce));
  EXPECT_EQ(receive(second, 1)[0], store_refused);
}

TEST(StoreServer, ASilentClientIsDisconnected) {
  const StoreServer server(bind_socket(local), "secret", {.greeting_timeout = 1s});
  StoreClient a(server.endpoint(), "secret");
  const Fd silent = connect_socket(server.endpoint(), Clock::now() + 30s);
  EXPECT_EQ(a.add("n", 1), 1);
  EXPECT_TRUE(is_closed(silent));
  EXPECT_EQ(a.add("n", 1), 2);  // an authenticated connection may be idle
}

// Their timeout is longer than the test: the client is admitted because one of them is closed for it.
TEST(StoreServer, SilentConnectionsCannotExcludeRanks) {
  const StoreServer server(bind_socket(local), "secret", {.max_connections = 64, .greeting_timeout = 1h});
  std::vector<Fd> silent;
  for (int i = 0; i < 64; ++i) {
    silent.push_back(connect_socket(server.endpoint(), Clock::now() + 30s));
    receive_exactly(silent.back(), server.endpoint(), store_greeting.size() + nonce_bytes,
                    Clock::now() + 30s);
  }
  EXPECT_EQ(StoreClient(server.endpoint(), "secret").add("n", 1), 1);
  EXPECT_TRUE(is_closed(silent[0])) << "the connection that has been silent longest is closed";
}

TEST_F(Store, MoreRanksThanAllowedWaitTheirTurn) {
  std::vector<Fd> ranks(64);
  for (Fd& rank : ranks) rank = admitted();
  auto late = std::async(std::launch::async, [&] { return client().add("n", 1); });
  EXPECT_EQ(late.wait_for(100ms), std::future_status::timeout);
  ranks.pop_back();
  EXPECT_EQ(late.get(), 1);
}

TEST_F(Store, ListensOnItsOwnAddressOnly) {
  EXPECT_EQ(server_.endpoint().host, "127.0.0.1");
  EXPECT_THROW(connect_socket({"127.0.0.2", server_.endpoint().port}, Clock::now() + 100ms),
               DistributedError);
}

TEST_F(Store, AFullStoreReportsItAndContinues) {
  const StoreServer small(bind_socket(local), "s", {.limits = {.keys = 2, .bytes = 1000}});
  StoreClient a(small.endpoint(), "s");
  a.set("a", "v"), a.set("b", "v");
  EXPECT_THAT(message_of<DistributedError>([&] { a.set("c", "v"); }),
              HasSubstr("key \"c\": the store is full: it holds 2 keys"));
  EXPECT_EQ(a.get("a", 1s), "v");
}

// A process that only looks whether the port is open ends its connection too.
TEST(RefusalLog, HostsAreListedUntilOneOfTheirProcessesAuthenticates) {
  RefusalLog refusals;
  refusals.ended_unproved("10.0.0.1 port 5", "it left");
  refusals.ended_unproved("10.0.0.1 port 6", "it has another secret");
  refusals.ended_unproved("10.0.0.2 port 5", "it left");
  EXPECT_EQ(refusals.unproved_hosts(), "10.0.0.1 (it has another secret), 10.0.0.2 (it left)");
  refusals.proved("10.0.0.1 port 7");
  EXPECT_EQ(refusals.unproved_hosts(), "10.0.0.2 (it left)");
  refusals.ended_unproved("10.0.0.1 port 8", "it left");
  EXPECT_EQ(refusals.unproved_hosts(), "10.0.0.2 (it left)") << "another process there has authenticated";
}

TEST(RefusalLog, RefusedConnectionsCannotFillTheLog) {
  RefusalLog refusals;
  const Clock::time_point start{};
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 10'000; ++i)
    refusals.add("10.0.0.1 port 5", "it knocked", start + std::chrono::milliseconds(i));
  refusals.add("10.0.0.1 port 6", "it knocked", start + 2min);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 21);
  EXPECT_THAT(
      log, HasSubstr("from 10.0.0.1 port 6: it knocked (9980 others were closed since the last such line)"));
}

TEST_F(Store, OversizedAndMalformedRequestsCloseTheConnection) {
  const Fd oversized = admitted();
  send(oversized, "\xff\xff\xff\xff");
  EXPECT_TRUE(is_closed(oversized));
  const Fd malformed = admitted();
  send(malformed, std::string("\x02\0\0\0hi", 6));
  EXPECT_TRUE(is_closed(malformed));
  EXPECT_EQ(client().add("n", 1), 1);
}

TEST_F(Store, PipelinedRequestsWakeEachOther) {
  const Fd a = admitted(), b = admitted();
  const std::string wait = encode(Request{.operation = Operation::wait, .keys = {"x"}, .number = 20'000});
  send(b, encode(Request{.operation = Operation::wait, .keys = {"y"}, .number = 20'000}));
  send(a, wait + encode(Request{.keys = {"y"}, .value = "v"}));
  client().set("x", "v");
  const size_t reply_bytes = encode(Reply{}).size();
  EXPECT_EQ(receive(a, 2 * reply_bytes), encode(Reply{}) + encode(Reply{}));
  EXPECT_EQ(receive(b, reply_bytes), encode(Reply{}));
}

TEST_F(Store, FuzzedBytesDoNotHarmTheServer) {
  ::testing::internal::CaptureStderr();
  std::mt19937 random(3);
  StoreClient witness = client();
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 80, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
    // Half of the inputs come from an authenticated client and thus reach the decoder; half of those are
    // almost valid requests.
    if (i % 4 == 0) {
      bytes =
          encode(Request{.operation = Operation::compare_set, .keys = {"k"}, .value = "v", .expected = "e"});
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const Fd socket = i % 2 == 0 ? admitted() : std::move(greeted().first);
    send(socket, bytes);
    if (i % 100 == 0) {
      EXPECT_EQ(witness.add("n", 1), i / 100 + 1);
    }
  }
  EXPECT_EQ(witness.add("n", 0), 20);
  ::testing::internal::GetCapturedStderr();
}

TEST_F(Store, EndOfTheServerIsReported) {
  auto server = std::make_unique<StoreServer>(bind_socket(local), "s");
  const Endpoint where = server->endpoint();
  StoreClient a(where, "s", {.connect_timeout = 2s});
  auto value = std::async(std::launch::async, [&] { return a.get("k", 20s); });
  EXPECT_EQ(value.wait_for(50ms), std::future_status::timeout);
  server.reset();
  EXPECT_THAT(message_of<DistributedError>([&] { value.get(); }),
              HasSubstr("runs in the launcher, which may have ended"));
  EXPECT_THROW(a.set("k", "v"), DistributedError);
}

TEST(StoreServerStart, EmptySecretIsRefused) {
  EXPECT_THROW(StoreServer(bind_socket(local), ""), ConfigError);
}

TEST(StoreClientStart, WaitsForALateServer) {
  Fd reserved = bind_socket(local);
  const Endpoint where = bound_endpoint(reserved);
  auto added = std::async(std::launch::async, [&] { return StoreClient(where, "s").add("n", 3); });
  EXPECT_EQ(added.wait_for(100ms), std::future_status::timeout);
  const StoreServer server(std::move(reserved), "s");
  EXPECT_EQ(added.get(), 3);
}

TEST(StoreClientStart, AnotherKindOfServerIsNamed) {
  const Fd bound = bind_socket(local);
  const Endpoint where = bound_endpoint(bound);
  ASSERT_EQ(::listen(bound.get(), 1), 0);
  std::thread server([&] {
    const Fd client(::accept(bound.get(), nullptr, nullptr));
    const std::string text = "HTTP/1.1 400 Bad Request\r\n" + std::string(100, ' ');
    EXPECT_GT(::send(client.get(), text.data(), text.size(), 0), 0);
  });
  EXPECT_THAT(message_of<DistributedError>([&] { const StoreClient client(where, "s"); }),
              HasSubstr("is not a rendezvous store of this version"));
  server.join();
}

TEST(BindSocket, AReservedPortCanStillBeServed) {
  const Fd reserved = bind_socket(local);
  const Fd server = bind_socket(bound_endpoint(reserved));
  EXPECT_EQ(::listen(server.get(), 1), 0);
}

TEST(BindSocket, ATakenPortIsNamed) {
  const Fd taken = bind_socket(local);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  EXPECT_THAT(message_of<IoError>([&] { bind_socket(bound_endpoint(taken)); }),
              AllOf(HasSubstr("127.0.0.1:"), HasSubstr("in use")));
}

TEST_F(Store, AddsWhenAClientEnds) {
  StoreClient other = client();
  {
    StoreClient ending = client();
    ending.add_at_end({"gone.7", "gone"}, 1);
    ending.set("k", "v");
    EXPECT_EQ(other.add("gone", 0), 0);
  }
  while (other.add("gone", 0) == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(other.add("gone", 0), 1);
  EXPECT_EQ(other.add("gone.7", 0), 1);
}

TEST_F(Store, AdditionsAtTheEndAreBounded) {
  const Fd socket = admitted();
  const std::string request = encode(Request{.operation = Operation::add_at_end, .keys = {"k"}, .number = 1});
  for (int i = 0; i < 17; ++i) send(socket, request);
  EXPECT_TRUE(is_closed(socket));
}

}  // namespace
}  // namespace stretto::cluster
