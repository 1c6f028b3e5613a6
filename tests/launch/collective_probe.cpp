#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

#include "stretto/base/error.h"
#include "stretto/cluster/socket.h"
#include "stretto/comm/group.h"
#include "stretto/comm/job.h"

namespace {

using stretto::ConfigError;
using stretto::Group;
using namespace std::chrono_literals;

void say(const char* line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void wait_for_file(const char* path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(5ms);
}

// Blocks forever on every rank.
void wait_forever() {
  while (true) std::this_thread::sleep_for(1h);
}

void all_reduce(Group& group, int times) {
  at::Tensor tensor = at::ones({1024});
  for (int i = 0; i < times; ++i) group.all_reduce(tensor).wait();
}

// Reduces 8 MiB repeatedly, in memory from the group's allocator.
[[noreturn]] void reduce_forever(Group& group) {
  at::Tensor tensor = group.allocator()(int64_t{2} << 20, at::kFloat, at::kCPU);
  group.all_reduce(tensor).wait();
  say("reduces");
  while (true) group.all_reduce(tensor).wait();
}

// Checks the result of each kind of collective on each rank, for values that differ between ranks.
void check_collectives(Group& group) {
  const int ranks = group.size(), rank = group.rank();
  const auto expect = [&](const char* what, const at::Tensor& found, const at::Tensor& expected) {
    if (!at::equal(found, expected)) throw stretto::DistributedError("rank {}: {} is wrong", rank, what);
  };
  const at::Tensor all = at::arange(1, ranks + 1, at::kFloat).repeat_interleave(1000);
  at::Tensor sum = at::full({1000}, rank + 1.0f);
  group.all_reduce(sum).wait();
  expect("all_reduce", sum, at::full({1000}, static_cast<float>(ranks * (ranks + 1)) / 2));
  at::Tensor gathered = at::empty({1000 * ranks});
  group.all_gather(gathered, at::full({1000}, rank + 1.0f)).wait();
  expect("all_gather", gathered, all);
  at::Tensor reduced = at::empty({1000});
  group.reduce_scatter(reduced, all.clone()).wait();
  expect("reduce_scatter", reduced, at::full({1000}, static_cast<float>(ranks * (rank + 1))));
  at::Tensor exchanged = at::empty({ranks});
  group.all_to_all(exchanged, at::full({ranks}, rank + 1.0f)).wait();
  expect("all_to_all", exchanged, at::arange(1, ranks + 1, at::kFloat));
  at::Tensor given = at::full({1000}, static_cast<float>(rank));
  group.broadcast(given, ranks - 1).wait();
  expect("broadcast", given, at::full({1000}, static_cast<float>(ranks - 1)));
  group.barrier();
  fmt::print("{}\n", group.transport());
}

void run(Group& group, std::string_view mode, const char* file, bool first_life) {
  if (mode == "check") return check_collectives(group);

  const bool odd_one = group.rank() == 1;
  all_reduce(group, 17);
  if (mode == "run") {
    say("runs");
    while (true) all_reduce(group, 1), std::this_thread::sleep_for(5ms);
  } else if (mode == "busy") {
    reduce_forever(group);
  } else if (mode == "skip" && odd_one && first_life) {
    wait_forever();
  } else if (mode == "die" && odd_one) {
    std::abort();
  } else if ((mode == "throw" || mode == "refuse") && odd_one) {
    throw ConfigError("the first mistake");
  } else if (mode == "differ") {
    at::Tensor output = at::empty({8});
    (odd_one ? group.all_gather(output, at::ones({4})) : group.all_reduce(output)).wait();
  } else if (mode == "compute" && odd_one) {
    std::this_thread::sleep_for(1s);
  } else if (mode.starts_with("late")) {
    say(odd_one ? "is late" : "waits");
    if (odd_one) wait_for_file(file);
  }
  if (mode == "late-message") {
    at::Tensor message = at::ones({8});
    (odd_one ? group.send(message, 0) : group.recv(message, 1)).wait();
  }
  all_reduce(group, 1);
}

}  // namespace

// A rank that calls 17 all_reduces with the others through the back end in the second argument, and then
// performs the action in the first argument. The third one is the file for which a late rank waits.
int main(int, char** argv) {
  using namespace stretto;
  int rank = 0;
  try {
    const auto me = cluster::read_rank_info();
    rank = me.rank;
    GroupOptions options = {.deadline = me.collective_timeout, .secret = me.secret, .encrypt = me.encrypt};
    if (me.local_world_size < me.world_size)
      options.address = cluster::address_towards({me.master_addr, me.master_port});
    Group group(argv[2], comm::connect_store(me, 60s), me.rank, me.world_size, options);
    run(group, argv[1], argv[3], me.restart_count == 0);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "probe: {}\n", error.what());
    if (argv[1] == std::string_view("throw")) std::this_thread::sleep_for(rank == 1 ? 1s : 0s);
    return error.exit_code();
  }
}
