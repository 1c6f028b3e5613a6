#include <algorithm>
#include <chrono>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/interfaces.h"
#include "stretto/comm/group.h"
#include "stretto/comm/job.h"
#include "stretto/comm/store_handle.h"
#include "stretto/tensor/memory.h"

// collectives_bench ROUNDS: one rank, started by `stretto launch`. Times all_reduce of fp32 sums, alternately
// through shared memory, on tensors inside and outside the segment, and through Gloo. Rank 0 prints JSON
// objects: the bytes, and for each round and method the median milliseconds per call.
namespace stretto {
namespace {

using Clock = std::chrono::steady_clock;

Group make_group(const std::string& backend, const std::shared_ptr<StoreHandle>& store,
                 const cluster::RankInfo& me) {
  StoreHandle handle = *store;
  handle.store = c10::make_intrusive<c10d::PrefixStore>(backend, store->store);
  GroupOptions options = {.secret = me.secret, .encrypt = me.encrypt && backend != "gloo"};
  if (me.local_world_size < me.world_size)
    options.address = cluster::own_address({me.master_addr, me.master_port});
  return Group(backend, std::make_shared<StoreHandle>(handle), me.rank, me.world_size, options);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

// Milliseconds of one call, on zeros, so that values do not change.
double median_milliseconds(Group& group, Tensor& tensor, int calls) {
  std::vector<double> times;
  for (int call = 0; call < calls; ++call) {
    const auto start = Clock::now();
    group.all_reduce(tensor).wait();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return median(times);
}

void require_sum(Group& group, Tensor& tensor) {
  tensor.fill_(group.rank() + 1);
  group.all_reduce(tensor).wait();
  const int64_t sum = group.size() * (group.size() + 1) / 2;
  if (!at::equal(tensor, at::full_like(tensor, sum))) throw Error("{} gave a wrong sum", group.transport());
  tensor.zero_();
}

void run(Group& shared, Group& gloo, int64_t rounds) {
  for (const int64_t bytes :
       {int64_t{4} << 10, int64_t{64} << 10, int64_t{1} << 20, int64_t{25} << 20, int64_t{100} << 20}) {
    Tensor in_place = shared.allocator()(bytes / 4, at::kFloat, at::kCPU);
    Tensor staged = plain_memory()(bytes / 4, at::kFloat, at::kCPU), theirs = staged.clone();
    require_sum(shared, in_place);
    require_sum(shared, staged);
    require_sum(gloo, theirs);
    const int calls = static_cast<int>(std::clamp<int64_t>((int64_t{200} << 20) / bytes, 8, 500));
    for (int64_t round = 0; round < rounds; ++round) {
      const double a = median_milliseconds(shared, in_place, calls),
                   b = median_milliseconds(shared, staged, calls),
                   c = median_milliseconds(gloo, theirs, calls);
      if (shared.rank() != 0) continue;
      fmt::print("{{\"bytes\": {}, \"in place\": {:.6f}, \"staged\": {:.6f}, \"gloo\": {:.6f}}}\n", bytes, a,
                 b, c);
    }
  }
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) {
  using namespace stretto;
  try {
    const auto rounds = argc == 2 ? parse_int(argv[1]) : std::nullopt;
    if (!rounds) throw ConfigError("usage: stretto launch -N RANKS -- collectives_bench ROUNDS");
    const cluster::RankInfo me = cluster::read_rank_info();
    const auto store = comm::connect_store(me, std::chrono::seconds(60));
    Group shared = make_group("shm", store, me), gloo = make_group("gloo", store, me);
    if (me.rank == 0) fmt::print(stderr, "{}\n", shared.transport());
    run(shared, gloo, *rounds);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "collectives_bench: {}\n", error.what());
    return error.exit_code();
  }
}
