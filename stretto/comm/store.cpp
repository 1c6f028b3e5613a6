#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/interfaces.h"
#include "stretto/cluster/rendezvous.h"
#include "stretto/cluster/store_client.h"
#include "stretto/cluster/store_server.h"
#include "stretto/comm/job.h"
#include "stretto/comm/store_handle.h"

namespace stretto::comm {
namespace {

using cluster::Rendezvous;
using Bytes = std::vector<uint8_t>;

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Bytes to_bytes(const std::string& text) { return Bytes(text.begin(), text.end()); }

// stretto's store with c10d's interface.
class ClientStore : public c10d::Store {
 public:
  // `server`: where this process hosts the store; else null.
  ClientStore(std::shared_ptr<cluster::StoreClient> client, std::chrono::milliseconds timeout,
              std::shared_ptr<cluster::StoreServer> server = nullptr)
      : c10d::Store(timeout), server_(std::move(server)), client_(std::move(client)) {}

  // The process that hosts the store waits for slower ranks, except after a failure.
  ~ClientStore() override {
    client_.reset();
    const bool failing = std::uncaught_exceptions() > 0;
    if (server_ && server_.use_count() == 1 && !failing) server_->wait_until_unused(std::chrono::seconds(5));
  }
  ClientStore(const ClientStore&) = delete;
  ClientStore& operator=(const ClientStore&) = delete;

  using c10d::Store::compareSet;
  using c10d::Store::set;

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<ClientStore>(client_, timeout_, server_);
  }
  void set(const std::string& key, const Bytes& value) override { client_->set(key, view(value)); }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    return to_bytes(client_->compare_set(key, view(expected), view(desired)));
  }
  Bytes get(const std::string& key) override { return to_bytes(client_->get(key, timeout_)); }
  int64_t add(const std::string& key, int64_t value) override { return client_->add(key, value); }
  bool deleteKey(const std::string& key) override { return client_->remove(key); }
  bool check(const std::vector<std::string>& keys) override { return client_->check(keys); }
  int64_t getNumKeys() override { throw DistributedError("the rendezvous store does not count its keys"); }
  void wait(const std::vector<std::string>& keys) override { client_->wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    client_->wait(keys, timeout);
  }

 private:
  std::shared_ptr<cluster::StoreServer> server_;
  std::shared_ptr<cluster::StoreClient> client_;
};

// How often this process has connected to the store of a job as a rank. A store may outlive the connections.
class Connections {
 public:
  int made(const cluster::RankInfo& info) {
    const std::lock_guard lock(mutex_);
    return made_[key(info)];
  }
  void add(const cluster::RankInfo& info) {
    const std::lock_guard lock(mutex_);
    ++made_[key(info)];
  }

 private:
  using Key = std::tuple<std::string, int, int>;
  static Key key(const cluster::RankInfo& info) {
    const cluster::Endpoint where =
        info.store.value_or(cluster::Endpoint{info.master_addr, info.master_port});
    return {where.host, where.port, info.rank};
  }
  std::mutex mutex_;
  std::map<Key, int> made_;
};

Connections& connections() {
  static Connections all;
  return all;
}

// A key prefix that is unique per start of the job and per connection of its ranks: a program that joins the
// job again (a second Lite) must not read values of the first time. All ranks connect equally often.
std::string life_of(const cluster::RankInfo& info) {
  const int before = connections().made(info);
  return "stretto.restart" + std::to_string(info.restart_count) +
         (before > 0 ? ".join" + std::to_string(before) : "");
}

// torchrun's TCPStore.
c10::intrusive_ptr<c10d::Store> agent_store(const cluster::RankInfo& info,
                                            std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(info.master_port);
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(info.master_addr, options);
}

// The endpoint of the job's store, which rank 0 starts in `server`.
cluster::Endpoint find_store(Rendezvous rendezvous, const cluster::RankInfo& info,
                             std::chrono::milliseconds timeout,
                             std::shared_ptr<cluster::StoreServer>& server) {
  const auto host_at = [&](const cluster::Endpoint& where) {
    const auto ranks = static_cast<size_t>(info.world_size);
    const cluster::StoreServerOptions options = {.max_connections =
                                                     1024 + 4 * ranks};  // a rank's threads have their own
    server = std::make_shared<cluster::StoreServer>(cluster::bind_socket(where),
                                                    cluster::store_secret(rendezvous, info), options);
  };
  if (rendezvous != Rendezvous::agent_secret) {
    if (info.rank == 0) host_at(cluster::listening_endpoint(rendezvous, info));
    return server ? server->endpoint() : cluster::store_endpoint(rendezvous, info);
  }
  // torchrun's TCPStore may be on another host than rank 0, and has the port.
  const auto agent = agent_store(info, timeout);
  const std::string key = life_of(info) + ".store";
  if (info.rank > 0) return cluster::verify_endpoint(agent->get_to_str(key), info.secret, life_of(info));
  host_at({cluster::own_address({info.master_addr, info.master_port}), 0});
  agent->set(key, cluster::sign_endpoint(server->endpoint(), info.secret, life_of(info)));
  return server->endpoint();
}

c10::intrusive_ptr<c10d::Store> meet(const cluster::RankInfo& info, std::chrono::milliseconds timeout) {
  const Rendezvous rendezvous = cluster::rendezvous_of(info);
  if (rendezvous == Rendezvous::launcher_store) {
    const cluster::StoreClientOptions options = {.connect_timeout = timeout, .encrypt = info.encrypt};
    auto client = std::make_shared<cluster::StoreClient>(*info.store, info.secret, options);
    return c10::make_intrusive<ClientStore>(std::move(client), timeout);
  }
  const std::string warning = cluster::exposure(rendezvous, info);
  if (info.rank == 0 && !warning.empty()) log::warning("{}", warning);
  try {
    if (rendezvous == Rendezvous::agent_open) return agent_store(info, timeout);
    std::shared_ptr<cluster::StoreServer> server;
    const cluster::Endpoint where = find_store(rendezvous, info, timeout, server);
    const cluster::StoreClientOptions options = {.connect_timeout = timeout, .host_process = "rank 0"};
    auto client =
        std::make_shared<cluster::StoreClient>(where, cluster::store_secret(rendezvous, info), options);
    return c10::make_intrusive<ClientStore>(std::move(client), timeout, std::move(server));
  } catch (const std::exception& error) {
    throw DistributedError(
        "rank {}: no rendezvous at MASTER_ADDR={}, MASTER_PORT={}: {}; {}", info.rank, info.master_addr,
        info.master_port, error.what(),
        info.rank == 0
            ? "another job may use this port: choose another MASTER_PORT"
            : "rank 0 hosts it: see its output, and give all ranks the same MASTER_ADDR, MASTER_PORT, WORLD_SIZE and STRETTO_SECRET");
  }
}

// A job runs without a recorder if necessary, but logs that.
std::shared_ptr<cluster::FlightRecorder> open_recorder(const cluster::RankInfo& info) {
  if (info.heartbeat.empty()) return nullptr;
  try {
    return cluster::FlightRecorder::open(info.heartbeat, info.local_rank);
  } catch (const IoError& error) {
    log::warning("the launcher cannot monitor the progress of this rank: STRETTO_HEARTBEAT: {}",
                 error.what());
    return nullptr;
  }
}

}  // namespace

std::shared_ptr<StoreHandle> connect_store(const cluster::RankInfo& info, std::chrono::milliseconds timeout) {
  if (!info.launched) return memory_store();
  auto store = c10::make_intrusive<c10d::PrefixStore>(life_of(info), meet(info, timeout));
  connections().add(info);
  return std::make_shared<StoreHandle>(StoreHandle{
      .store = std::move(store), .recorder = open_recorder(info), .compare_calls = info.compare_calls});
}

}  // namespace stretto::comm

std::shared_ptr<stretto::StoreHandle> stretto::memory_store() {
  return std::make_shared<StoreHandle>(StoreHandle{.store = c10::make_intrusive<c10d::HashStore>()});
}
