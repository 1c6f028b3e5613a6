#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/store_client.h"
#include "stretto/cluster/store_server.h"

// store_bench CLIENTS ROUNDS: the rendezvous of CLIENTS ranks, each with a connection of its own, in a store
// of this process: they connect and authenticate, count themselves in, publish an address, wait until all
// have come, and read the address of another. Prints a JSON object per round: seconds until all are done.
namespace stretto::cluster {
namespace {

using namespace std::chrono_literals;

double rendezvous(int64_t clients) {
  const StoreServerOptions options = {.max_connections = static_cast<size_t>(clients) + 16,
                                      .greeting_timeout = 60s};
  const StoreServer server(bind_socket({"127.0.0.1", 0}), "secret", options);
  constexpr int64_t threads = 16;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto start = Clock::now();
  const auto ranks_of_thread = [&](int64_t thread) {
    std::deque<StoreClient> mine;
    for (int64_t rank = thread; rank < clients; rank += threads) {
      StoreClient& client =
          mine.emplace_back(server.endpoint(), "secret", StoreClientOptions{.connect_timeout = 60s});
      client.set(fmt::format("address.{}", rank), "10.0.0.1:12345");
      if (client.add("joined", 1) == clients) client.set("all", "yes");
    }
    int64_t rank = thread;
    for (StoreClient& client : mine) {
      client.wait({"all"}, 60s);
      client.get(fmt::format("address.{}", (rank + 1) % clients), 60s);
      rank += threads;
    }
  };
  std::vector<std::thread> workers;
  for (int64_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      try {
        ranks_of_thread(thread);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace
}  // namespace stretto::cluster

int main(int argc, char** argv) {
  using namespace stretto;
  try {
    const auto clients = argc == 3 ? parse_int(argv[1]) : std::nullopt,
               rounds = argc == 3 ? parse_int(argv[2]) : std::nullopt;
    if (!clients || !rounds) throw ConfigError("usage: store_bench CLIENTS ROUNDS");
    for (int64_t round = 0; round < *rounds; ++round)
      fmt::print("{{\"clients\": {}, \"seconds\": {:.4f}}}\n", *clients, cluster::rendezvous(*clients));
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "store_bench: {}\n", error.what());
    return error.exit_code();
  }
}
