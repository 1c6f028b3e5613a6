#include <sys/socket.h>

#include "stretto/base/error.h"
#include "stretto/cluster/environment.h"
#include "stretto/cluster/store_client.h"

// A rank that prints its numbers. Under stretto's launcher, all ranks also use the store, and rank 0 binds
// MASTER_PORT like a program with torch's TCPStore.
int main() {
  using namespace stretto;
  try {
    const auto me = cluster::read_rank_info();
    fmt::print("probe {} of {}, local {} of {}\n", me.rank, me.world_size, me.local_rank,
               me.local_world_size);
    if (!me.store) return 0;

    if (me.rank == 0) {
      const Fd server = cluster::bind_socket({me.master_addr, me.master_port});
      if (::listen(server.get(), 1) != 0) throw IoError("cannot listen on MASTER_PORT={}", me.master_port);
    }
    constexpr auto patience = std::chrono::seconds(60);
    cluster::StoreClient store(*me.store, me.secret);
    if (store.add("arrived", 1) == me.world_size) store.set("all", "here");
    store.wait({"all"}, patience);
    fmt::print("probe {} met {}\n", me.rank, store.get("arrived", patience));
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "probe: {}\n", error.what());
    return error.exit_code();
  }
}
