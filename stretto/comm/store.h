#pragma once

#include <chrono>
#include <memory>

namespace stretto {

namespace cluster {
struct RankInfo;
}

struct StoreHandle;

// The rendezvous store of this job, which cluster/rendezvous.h chooses: the launcher's, rank 0's or torchrun's; one in
// memory for a rank alone. Where strangers can reach it, rank 0 logs one warning. Under stretto's launcher this rank's
// collectives are recorded for it from here on. Throws DistributedError.
std::shared_ptr<StoreHandle> connect_store(const cluster::RankInfo& info, std::chrono::milliseconds timeout);

// A store in this process's memory, for ranks that are threads.
std::shared_ptr<StoreHandle> memory_store();

}  // namespace stretto
