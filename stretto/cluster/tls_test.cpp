#include "stretto/cluster/tls.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "stretto/base/message_support.h"
#include "stretto/cluster/store_client.h"
#include "stretto/cluster/store_server.h"

namespace stretto::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const Endpoint peer = {"10.0.0.7", 29500};  // a name for messages

std::pair<Fd, Fd> pair_of_sockets() {
  std::array<int, 2> ends;
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

// What arrives until the end of the stream.
std::string receive_all(const Fd& socket) {
  std::string all;
  std::array<char, 4096> bytes;
  while (true) {
    pollfd watched = {socket.get(), POLLIN, 0};
    if (::poll(&watched, 1, 20'000) != 1) return all + "(nothing for 20 s)";
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && would_block(errno)) continue;
    if (got <= 0) return all;
    all.append(bytes.data(), static_cast<size_t>(got));
  }
}

void send_text(const Fd& socket, std::string_view text) { send_all(socket, peer, text, Clock::now() + 20s); }

// While it exists, this process can open `more` further descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(Fd(::dup(STDERR_FILENO)).get()) + more;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

// A wire whose bytes are recorded, and may be changed on their way.
class Wire {
 public:
  // `change`: is given the bytes of the connecting side, from `first` on.
  explicit Wire(std::function<void(std::string& bytes, size_t first)> change = {})
      : change_(std::move(change)) {
    auto [connecting, first] = pair_of_sockets();
    auto [accepting, second] = pair_of_sockets();
    connecting_end = std::move(connecting);
    accepting_end = std::move(accepting);
    carriers_[0] = std::thread([this, from = first.get(), to = second.get()] { carry(from, to, true); });
    carriers_[1] = std::thread([this, from = second.get(), to = first.get()] { carry(from, to, false); });
    ends_ = {std::move(first), std::move(second)};
  }
  ~Wire() { close(); }
  // Everything that has passed, in both directions.
  std::string close() {
    connecting_end.reset();
    accepting_end.reset();
    flush_tls();
    for (const Fd& end : ends_) ::shutdown(end.get(), SHUT_RDWR);
    for (std::thread& carrier : carriers_)
      if (carrier.joinable()) carrier.join();
    return passed_[0] + passed_[1];
  }

  Fd connecting_end, accepting_end;

 private:
  void carry(int from, int to, bool forward) {
    std::string& passed = passed_[forward ? 0 : 1];
    std::array<char, 4096> buffer;
    while (true) {
      pollfd watched = {from, POLLIN, 0};
      ::poll(&watched, 1, -1);
      const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
      if (got < 0 && would_block(errno)) continue;
      if (got <= 0) break;
      std::string bytes(buffer.data(), static_cast<size_t>(got));
      if (forward && change_) change_(bytes, passed.size());
      passed += bytes;
      try {
        send_all(Fd(::dup(to)), peer, bytes, Clock::now() + 20s);
      } catch (const DistributedError&) {
        break;
      }
    }
    ::shutdown(to, SHUT_WR);
  }

  const std::function<void(std::string&, size_t)> change_;
  std::array<Fd, 2> ends_;
  std::array<std::string, 2> passed_;
  std::array<std::thread, 2> carriers_;
};

// Both sides of a connection over a wire.
std::pair<Fd, Fd> encrypt(Wire& wire) {
  Fd accepting = accept_tls(std::move(wire.accepting_end), "secret");
  Fd connecting = connect_tls(std::move(wire.connecting_end), peer, "secret", Clock::now() + 20s);
  return {std::move(connecting), std::move(accepting)};
}

std::string random_text(size_t bytes) {
  std::mt19937_64 random(bytes);
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

// More than all buffers hold, in both directions at once; each side ends its direction by itself.
TEST(Tls, CarriesBothDirectionsAndTheirEnds) {
  Wire wire;
  auto [connecting, accepting] = encrypt(wire);
  const std::string there = random_text(9'000'001), back = random_text(7'000'003);
  std::thread sender([&, &connecting = connecting] {
    send_text(connecting, there);
    ::shutdown(connecting.get(), SHUT_WR);
  });
  std::thread other([&, &accepting = accepting] {
    send_text(accepting, back);
    EXPECT_TRUE(receive_all(accepting) == there);
    send_text(accepting, " and more");  // the other direction has ended
    ::shutdown(accepting.get(), SHUT_WR);
  });
  EXPECT_TRUE(receive_all(connecting) == back + " and more");
  sender.join();
  other.join();
}

TEST(Tls, WhatWasWrittenBeforeCloseArrives) {
  Wire wire;
  auto [connecting, accepting] = encrypt(wire);
  const std::string text = random_text(3'000'000);
  std::thread reader([&, &accepting = accepting] { EXPECT_TRUE(receive_all(accepting) == text); });
  send_text(connecting, text);
  connecting.reset();
  flush_tls();
  reader.join();
}

TEST(Tls, NothingOnTheWireIsPlain) {
  const std::string text = "gradients, tokens and weights";
  Wire plain, wire;
  send_text(plain.connecting_end, text);
  ::shutdown(plain.connecting_end.get(), SHUT_WR);
  EXPECT_EQ(receive_all(plain.accepting_end), text);
  EXPECT_THAT(plain.close(), HasSubstr(text));

  auto [connecting, accepting] = encrypt(wire);
  send_text(connecting, text);
  ::shutdown(connecting.get(), SHUT_WR);
  EXPECT_EQ(receive_all(accepting), text);
  connecting.reset();
  accepting.reset();
  const std::string passed = wire.close();
  EXPECT_THAT(passed, AllOf(HasSubstr(std::string(tls_greeting)), HasSubstr("\x17\x03\x03")))
      << "the recording has no record of application data";
  for (const std::string& part : {text, text.substr(0, 9), std::string("secret")})
    EXPECT_THAT(passed, ::testing::Not(HasSubstr(part)));
}

TEST(Tls, AnotherSecretIsRefusedOnBothSides) {
  Wire wire;
  const Fd accepting = accept_tls(std::move(wire.accepting_end), "secret");
  EXPECT_THAT(message_of<PeerRefusal>(
                  [&] { connect_tls(std::move(wire.connecting_end), peer, "another", Clock::now() + 20s); }),
              has_all("10.0.0.7:29500: ", "encryption of this process was refused",
                      "(STRETTO_SECRET or STRETTO_SECRET_FILE)", "not the job's"));
  EXPECT_EQ(receive_all(accepting), "");
}

// An accepting side without the key, which shows a certificate that it has signed itself.
void accept_with_certificate(const Fd& connection) {
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(::EVP_EC_gen("P-256"), &::EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(::X509_new(), &::X509_free);
  ::X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  ::X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  ::X509_set_pubkey(certificate.get(), key.get());
  ASSERT_GT(::X509_sign(certificate.get(), key.get(), ::EVP_sha256()), 0);
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(::SSL_CTX_new(::TLS_server_method()),
                                                                    &::SSL_CTX_free);
  ASSERT_EQ(::SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  ASSERT_EQ(::SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  const std::unique_ptr<SSL, decltype(&::SSL_free)> tls(::SSL_new(context.get()), &::SSL_free);
  ::fcntl(connection.get(), F_SETFL, ::fcntl(connection.get(), F_GETFL) & ~O_NONBLOCK);
  send_text(connection, tls_greeting);
  ::SSL_set_fd(tls.get(), connection.get());
  EXPECT_LE(::SSL_accept(tls.get()), 0);
}

TEST(Tls, ACertificateDoesNotReplaceTheSecret) {
  auto [connecting, accepting] = pair_of_sockets();
  std::thread other([&, end = std::move(accepting)] { accept_with_certificate(end); });
  EXPECT_THROW(connect_tls(std::move(connecting), peer, "secret", Clock::now() + 20s), PeerRefusal);
  other.join();
}

TEST(Tls, ASideThatDoesNotEncryptIsNamed) {
  const StoreServer plain(bind_socket({"127.0.0.1", 0}), "secret");
  EXPECT_THAT(
      message_of<OneSideEncrypts>([&] { StoreClient(plain.endpoint(), "secret", {.encrypt = true}); }),
      has_all("process there does not encrypt", "this one does"));
  const StoreServer encrypted(bind_socket({"127.0.0.1", 0}), "secret", {.encrypt = true});
  EXPECT_THAT(message_of<OneSideEncrypts>([&] { StoreClient(encrypted.endpoint(), "secret"); }),
              has_all("process there encrypts", "this one does not"));
}

// The receiver gets what came before, and then the end, never other bytes.
TEST(Tls, AChangedByteEndsTheConnection) {
  std::atomic<size_t> change_at = SIZE_MAX;
  Wire wire([&](std::string& bytes, size_t first) {
    if (change_at >= first && change_at < first + bytes.size()) bytes[change_at - first] ^= 1;
  });
  auto [connecting, accepting] = encrypt(wire);
  send_text(connecting, "first");
  EXPECT_EQ(receive_exactly(accepting, peer, 5, Clock::now() + 20s), "first");
  change_at = 20'000;
  send_text(connecting, std::string(100'000, 'x'));
  const std::string rest = receive_all(accepting);
  EXPECT_LT(rest.size(), 20'000u);
  EXPECT_EQ(rest, std::string(rest.size(), 'x'));
}

TEST(Tls, TheStoreWorksThroughIt) {
  StoreServer server(bind_socket({"127.0.0.1", 0}), "secret", {.encrypt = true});
  {
    StoreClient one(server.endpoint(), "secret", {.encrypt = true});
    StoreClient other(server.endpoint(), "secret", {.encrypt = true});
    const std::string large = random_text(5'000'000);
    std::thread setter([&] { one.set("large", large); });
    EXPECT_TRUE(other.get("large", 20s) == large);
    setter.join();
    StoreClient(server.endpoint(), "secret", {.encrypt = true}).add_at_end({"ended"}, 1);
    other.wait({"ended"}, 20s);
  }
  server.wait_until_unused(20s);
  EXPECT_EQ(StoreClient(server.endpoint(), "secret", {.encrypt = true}).add("ended", 1), 2);
}

TEST(Tls, AConnectionWithoutFreeDescriptorsFailsLikeAnyOther) {
  std::pair<Fd, Fd> other = pair_of_sockets(), ends = pair_of_sockets();
  const Fd warm = accept_tls(std::move(other.first), "secret");  // whatever opens files once has done so
  send_text(ends.second, tls_greeting);
  const FewDescriptors none(0);
  EXPECT_THAT(message_of<DistributedError>(
                  [&] { connect_tls(std::move(ends.first), peer, "secret", Clock::now() + 20s); }),
              HasSubstr("10.0.0.7:29500: cannot encrypt a connection"));
}

// A connection takes one descriptor, and its encryption two more.
TEST(Tls, AStoreWithoutFreeDescriptorsServesLaterClients) {
  const StoreServer server(bind_socket({"127.0.0.1", 0}), "secret", {.encrypt = true});
  StoreClient first(server.endpoint(), "secret", {.encrypt = true});  // whatever opens files once has done so
  const Fd late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server.endpoint().port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  {
    const FewDescriptors few(1);
    EXPECT_EQ(::connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(receive_all(late), "") << "the connection is closed without a greeting";
  }
  EXPECT_EQ(StoreClient(server.endpoint(), "secret", {.encrypt = true}).add("n", 1), 1);
  EXPECT_EQ(first.add("n", 1), 2);
}

}  // namespace
}  // namespace stretto::cluster
