#include "stretto/comm/store.h"

#include <memory>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/store_client.h"

namespace stretto {
namespace {

using Bytes = std::vector<uint8_t>;

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Bytes to_bytes(const std::string& text) { return Bytes(text.begin(), text.end()); }

// stretto's store as c10d wants it.
class ClientStore : public c10d::Store {
 public:
  ClientStore(std::shared_ptr<cluster::StoreClient> client, std::chrono::milliseconds timeout)
      : c10d::Store(timeout), client_(std::move(client)) {}

  using c10d::Store::compareSet;
  using c10d::Store::set;

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<ClientStore>(client_, timeout_);
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
  std::shared_ptr<cluster::StoreClient> client_;
};

c10::intrusive_ptr<c10d::Store> torchrun_store(const cluster::RankInfo& info,
                                               std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(info.master_port);
  options.isServer = info.rank == 0 && !info.agent_store;
  options.numWorkers = info.world_size;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    return c10::make_intrusive<c10d::TCPStore>(info.master_addr, options);
  } catch (const std::exception& error) {
    throw DistributedError("rank {}: no rendezvous at {}:{} (MASTER_ADDR, MASTER_PORT): {}", info.rank,
                           info.master_addr, info.master_port, error.what());
  }
}

// A job can do without being watched, but not silently.
std::shared_ptr<cluster::FlightRecorder> open_recorder(const cluster::RankInfo& info) {
  if (info.heartbeat.empty()) return nullptr;
  try {
    return cluster::FlightRecorder::open(info.heartbeat, info.rank);
  } catch (const IoError& error) {
    log::warning("the launcher cannot see whether this rank moves: STRETTO_HEARTBEAT: {}", error.what());
    return nullptr;
  }
}

}  // namespace

std::shared_ptr<StoreHandle> connect_store(const cluster::RankInfo& info, std::chrono::milliseconds timeout) {
  if (!info.launched) return memory_store();
  // Each restart of the job begins with keys of its own.
  const std::string generation = "stretto.restart" + std::to_string(info.restart_count);
  c10::intrusive_ptr<c10d::Store> store;
  if (info.store) {
    cluster::StoreClientOptions options;
    options.connect_timeout = timeout;
    auto client = std::make_shared<cluster::StoreClient>(*info.store, info.secret, options);
    store = c10::make_intrusive<ClientStore>(std::move(client), timeout);
  } else {
    store = torchrun_store(info, timeout);
  }
  return std::make_shared<StoreHandle>(
      StoreHandle{.store = c10::make_intrusive<c10d::PrefixStore>(generation, store),
                  .recorder = open_recorder(info),
                  .compare_calls = info.compare_calls});
}

std::shared_ptr<StoreHandle> memory_store() {
  return std::make_shared<StoreHandle>(StoreHandle{.store = c10::make_intrusive<c10d::HashStore>()});
}

}  // namespace stretto
