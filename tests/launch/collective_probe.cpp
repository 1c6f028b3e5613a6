#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/comm/store.h"

namespace {

using stretto::Group;
using namespace std::chrono_literals;

// Nobody comes out of it.
void wait_for_ever() {
  while (true) std::this_thread::sleep_for(1h);
}

void all_reduce(Group& group, int times) {
  at::Tensor tensor = at::ones({1024});
  for (int i = 0; i < times; ++i) group.all_reduce(tensor).wait();
}

// Reductions of 8 MiB on end, in the memory that the group gives.
[[noreturn]] void reduce_on_end(Group& group) {
  at::Tensor tensor = group.allocator()(int64_t{2} << 20, at::kFloat, at::kCPU);
  group.all_reduce(tensor).wait();
  fmt::print("reduces\n");
  std::fflush(stdout);
  while (true) group.all_reduce(tensor).wait();
}

void run(Group& group, std::string_view mode, bool first_life) {
  const bool odd_one = group.rank() == 1;
  all_reduce(group, 17);
  if (mode == "run") {
    while (true) all_reduce(group, 1), std::this_thread::sleep_for(5ms);
  } else if (mode == "busy") {
    reduce_on_end(group);
  } else if (mode == "skip" && odd_one && first_life) {
    wait_for_ever();
  } else if (mode == "die" && odd_one) {
    std::abort();
  } else if (mode == "differ") {
    at::Tensor output = at::empty({8});
    (odd_one ? group.all_gather(output, at::ones({4})) : group.all_reduce(output)).wait();
  } else if (mode == "compute" && odd_one) {
    std::this_thread::sleep_for(3s);
  }
  all_reduce(group, 1);
}

}  // namespace

// A rank that calls 17 all_reduces with the others through the back end that its second argument names, and then does what
// the first says.
int main(int, char** argv) {
  using namespace stretto;
  try {
    const auto me = cluster::read_rank_info();
    Group group(argv[2], connect_store(me, 60s), me.rank, me.world_size);
    run(group, argv[1], me.restart_count == 0);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "probe: {}\n", error.what());
    return error.exit_code();
  }
}
