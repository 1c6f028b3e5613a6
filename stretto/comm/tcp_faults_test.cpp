#include <atomic>
#include <future>
#include <list>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/cluster/socket.h"
#include "stretto/comm/group.h"
#include "stretto/comm/store_handle.h"

// Ranks that are connected through a network with faults.
namespace stretto::comm {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

enum class Fault { none, reset, stall };

struct Network {
  std::chrono::milliseconds delay{0};  // of each packet
  size_t packet_bytes = 65536;
  Fault fault = Fault::none;
  size_t bytes_before_fault = 0;  // of both directions of all connections
  bool encrypt = false;
  std::string* passed = nullptr;  // is given all bytes
};

// Passes connections on to a target.
class FaultyProxy {
 public:
  explicit FaultyProxy(Network network)
      : network_(network), listener_(cluster::bind_socket({"127.0.0.1", 0})) {
    ::listen(listener_.get(), 64);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FaultyProxy() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (const Fd& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
    for (std::thread& pump : pumps_) pump.join();
  }
  cluster::Endpoint endpoint() const { return cluster::bound_endpoint(listener_); }
  void lead_to(const cluster::Endpoint& target) { target_.set_value(target); }

 private:
  void accept_all() {
    const auto target = target_.get_future().share();
    while (true) {
      Fd accepted(::accept(listener_.get(), nullptr, nullptr));
      if (!accepted) return;
      const Fd& from = sockets_.emplace_back(std::move(accepted));
      const Fd& to =
          sockets_.emplace_back(cluster::connect_socket(target.get(), cluster::Clock::now() + 10s));
      pumps_.emplace_back([&] { pump(from, to); });
      pumps_.emplace_back([&] { pump(to, from); });
    }
  }
  void pump(const Fd& from, const Fd& to) {
    std::string buffer(network_.packet_bytes, '\0');
    while (true) {
      const ssize_t got = ::recv(from.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && cluster::would_block(errno)) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      if (got <= 0) break;
      passed_ += static_cast<size_t>(got);
      if (network_.passed != nullptr) {
        const std::lock_guard lock(mutex_);
        network_.passed->append(buffer, 0, static_cast<size_t>(got));
      }
      if (network_.fault != Fault::none && passed_ > network_.bytes_before_fault) {
        if (network_.fault == Fault::stall) continue;
        const linger at_once = {.l_onoff = 1, .l_linger = 0};
        ::setsockopt(to.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        break;
      }
      std::this_thread::sleep_for(network_.delay);
      try {
        cluster::send_all(to, {"the target", 0}, std::string_view(buffer).substr(0, static_cast<size_t>(got)),
                          cluster::Clock::now() + 20s);
      } catch (const DistributedError&) {
        break;
      }
    }
    ::shutdown(from.get(), SHUT_RDWR);
    ::shutdown(to.get(), SHUT_RDWR);
  }

  const Network network_;
  Fd listener_;
  std::promise<cluster::Endpoint> target_;
  std::atomic<size_t> passed_ = 0;
  std::mutex mutex_;
  std::list<Fd> sockets_;
  std::list<std::thread> pumps_;
  std::thread acceptor_;
};

// A store in which the first rank's address is that of the proxy.
class ProxiedStore : public c10d::HashStore {
 public:
  explicit ProxiedStore(FaultyProxy& proxy) : proxy_(proxy) {}
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    if (key != "tcp.address.0") return c10d::HashStore::set(key, value);
    proxy_.lead_to(cluster::parse_endpoint(std::string(value.begin(), value.end()), "rank 0"));
    const std::string here = proxy_.endpoint().text();
    c10d::HashStore::set(key, {here.begin(), here.end()});
  }
  using c10d::Store::set;

 private:
  FaultyProxy& proxy_;
};

// The sum over two ranks, or the error, of each.
std::vector<std::string> sum_over(const Network& network, int64_t elements,
                                  std::chrono::milliseconds deadline) {
  FaultyProxy proxy(network);
  const auto store =
      std::make_shared<StoreHandle>(StoreHandle{.store = c10::make_intrusive<ProxiedStore>(proxy)});
  const auto rank = [&](int rank) -> std::string {
    try {
      GroupOptions options;
      options.deadline = deadline;
      options.secret = "s3cret";
      options.encrypt = network.encrypt;
      Group group("tcp", store, rank, 2, options);
      group.barrier();
      Tensor tensor = at::full({elements}, rank + 1.0f);
      group.all_reduce(tensor).wait();
      return at::equal(tensor, at::full({elements}, 3.0f)) ? "right" : "wrong";
    } catch (const DistributedError& error) {
      return error.what();
    }
  };
  auto other = std::async(std::launch::async, rank, 1);
  const std::string own = rank(0);
  return {own, other.get()};
}

TEST(TcpFaults, ASlowNetworkGivesTheRightSums) {
  for (const std::string& result : sum_over({.delay = 20ms}, 100'000, 20s)) EXPECT_EQ(result, "right");
  // About 1 Mbit/s: 130 bytes in a millisecond.
  for (const std::string& result : sum_over({.delay = 1ms, .packet_bytes = 130}, 20'000, 20s))
    EXPECT_EQ(result, "right");
}

TEST(TcpFaults, AConnectionThatIsResetIsNamed) {
  for (const bool encrypt : {false, true}) {
    for (const std::string& result :
         sum_over({.fault = Fault::reset, .bytes_before_fault = 200'000, .encrypt = encrypt}, 1'000'000, 20s))
      EXPECT_THAT(result,
                  AllOf(HasSubstr("all_reduce [1000000] float32"), HasSubstr("closed the connection")));
  }
}

TEST(TcpFaults, EncryptedTensorsCannotBeReadOnTheWay) {
  std::string few_ones;
  for (int i = 0; i < 4; ++i) few_ones += std::string("\0\0\x80\x3f", 4);  // 1.0f
  std::string plain, encrypted;
  for (const std::string& result : sum_over({.passed = &plain}, 20'000, 20s)) EXPECT_EQ(result, "right");
  for (const std::string& result : sum_over({.encrypt = true, .passed = &encrypted}, 20'000, 20s))
    EXPECT_EQ(result, "right");
  EXPECT_NE(plain.find(few_ones), std::string::npos);
  EXPECT_EQ(encrypted.find(few_ones), std::string::npos);
  EXPECT_GT(encrypted.size(), plain.size());
}

TEST(TcpFaults, AConnectionThatStallsFailsAtTheDeadline) {
  for (const std::string& result :
       sum_over({.fault = Fault::stall, .bytes_before_fault = 200'000}, 1'000'000, 1500ms))
    EXPECT_THAT(result, AnyOf(HasSubstr("has sent nothing more until the deadline"),
                              HasSubstr("has taken nothing more until the deadline"),
                              HasSubstr("closed the connection")));
}

TEST(TcpFaults, AConnectionThatStallsDuringTheRendezvousIsNamed) {
  const auto results = sum_over({.fault = Fault::stall, .bytes_before_fault = 10}, 4, 1s);
  EXPECT_THAT(results[0], HasSubstr("rank 1 did not connect to this rank in time"));
  EXPECT_THAT(results[1], HasSubstr("no connection to rank 0: 127.0.0.1:"));
}

// The proxy rejects connections, as a firewall may.
TEST(TcpFaults, APortThatCannotBeReachedIsNamed) {
  const auto store =
      std::make_shared<StoreHandle>(StoreHandle{.store = c10::make_intrusive<c10d::HashStore>()});
  const auto closed = cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).text();
  store->store->set("tcp.key", std::string("key"));
  store->store->set("tcp.address.0", closed);
  GroupOptions options;
  options.deadline = 500ms;
  EXPECT_THAT(message_of<DistributedError>([&] { Group("tcp", store, 1, 2, options); }),
              AllOf(HasSubstr("no connection to rank 0: " + closed + ": cannot connect: Connection refused"),
                    HasSubstr("allow connections between the job's hosts")));
}

}  // namespace
}  // namespace stretto::comm
