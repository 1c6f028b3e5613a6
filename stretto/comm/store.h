#pragma once

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "stretto/cluster/environment.h"

namespace stretto {

struct StoreHandle {
  c10::intrusive_ptr<c10d::Store> store;
};

// The rendezvous store of this job: stretto's own when its launcher started us, else torchrun's TCPStore (rank 0 hosts
// it where torchrun's agent does not), else one in memory for a rank alone.
std::shared_ptr<StoreHandle> connect_store(const cluster::RankInfo& info, std::chrono::milliseconds timeout);

// A store in this process's memory, for ranks that are threads.
std::shared_ptr<StoreHandle> memory_store();

}  // namespace stretto
