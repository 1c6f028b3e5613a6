#include "stretto/comm/shared_memory.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/contributions_fixture.h"
#include "stretto/comm/rank_threads.h"

// Tests specific to shared memory; group_test.cpp runs over every back end.
namespace stretto::comm {
namespace {

using ::testing::HasSubstr;

constexpr std::array dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kByte,
                               at::kChar,  at::kShort,  at::kInt,      at::kLong};

struct Setting {
  int ranks;
  bool in_place;  // tensors are in the segment
};

class SharedOperations : public ::testing::TestWithParam<Setting> {
 protected:
  static constexpr int64_t sizes[] = {0, 1, 7, 1000, 150'001};  // the last one takes several pieces

  // Copies `values` to memory of the tested kind, not aligned to a cache line.
  Tensor in_tested_memory(Group& group, const Tensor& values) const {
    const Allocator allocator = GetParam().in_place ? group.allocator() : plain_memory();
    Tensor memory = allocator(values.numel() + 1, values.scalar_type(), at::kCPU).slice(0, 1);
    memory.copy_(values);
    return memory;
  }
  template <class Body>
  void with_every_size_and_dtype(const Body& body) const {
    run_rank_threads(GetParam().ranks, [&](Group& group) {
      for (const at::ScalarType dtype : dtypes) {
        for (const int64_t n : sizes) {
          SCOPED_TRACE(fmt::format("{} x {}, rank {}", n, c10::toString(dtype), group.rank()));
          body(group, n, dtype);
        }
      }
    });
  }
  int ranks() const { return GetParam().ranks; }
};

TEST_P(SharedOperations, AllReduceIsTheSumInTheOrderOfRanks) {
  with_every_size_and_dtype([&](Group& group, int64_t n, at::ScalarType dtype) {
    Tensor tensor = in_tested_memory(group, contribution_of(group.rank(), n, dtype));
    group.all_reduce(tensor).wait();
    EXPECT_TRUE(at::equal(tensor, sum_of_all(ranks(), n, dtype)));
  });
}

TEST_P(SharedOperations, ReduceScatter) {
  with_every_size_and_dtype([&](Group& group, int64_t n, at::ScalarType dtype) {
    Tensor output = in_tested_memory(group, at::zeros({n}, dtype));
    const Tensor input = in_tested_memory(group, contribution_of(group.rank(), n * ranks(), dtype));
    group.reduce_scatter(output, input).wait();
    const Tensor sum = sum_of_all(ranks(), n * ranks(), dtype);
    EXPECT_TRUE(at::equal(output, sum.slice(0, n * group.rank(), n * (group.rank() + 1))));
    EXPECT_TRUE(at::equal(input, contribution_of(group.rank(), n * ranks(), dtype)));
  });
}

TEST_P(SharedOperations, AllGather) {
  with_every_size_and_dtype([&](Group& group, int64_t n, at::ScalarType dtype) {
    std::vector<Tensor> all;
    for (int rank = 0; rank < ranks(); ++rank) all.push_back(contribution_of(rank, n, dtype));
    const Tensor input = in_tested_memory(group, all[static_cast<size_t>(group.rank())]);
    Tensor output = in_tested_memory(group, at::zeros({n * ranks()}, dtype));
    group.all_gather(output, input).wait();
    EXPECT_TRUE(at::equal(output, at::cat(all)));
  });
}

TEST_P(SharedOperations, Broadcast) {
  with_every_size_and_dtype([&](Group& group, int64_t n, at::ScalarType dtype) {
    const int root = ranks() - 1;
    Tensor tensor = in_tested_memory(group, contribution_of(group.rank(), n, dtype));
    group.broadcast(tensor, root).wait();
    EXPECT_TRUE(at::equal(tensor, contribution_of(root, n, dtype)));
  });
}

TEST_P(SharedOperations, AllToAll) {
  with_every_size_and_dtype([&](Group& group, int64_t n, at::ScalarType dtype) {
    const Tensor input = in_tested_memory(group, contribution_of(group.rank(), n * ranks(), dtype));
    Tensor output = in_tested_memory(group, at::zeros({n * ranks()}, dtype));
    group.all_to_all(output, input).wait();
    std::vector<Tensor> expected;
    for (int rank = 0; rank < ranks(); ++rank) {
      expected.push_back(
          contribution_of(rank, n * ranks(), dtype).slice(0, n * group.rank(), n * (group.rank() + 1)));
    }
    EXPECT_TRUE(at::equal(output, at::cat(expected)));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedOperations,
                         ::testing::Values(Setting{1, false}, Setting{2, false}, Setting{2, true},
                                           Setting{3, false}, Setting{3, true}, Setting{5, true}),
                         [](const auto& info) {
                           return fmt::format("{}{}", info.param.ranks,
                                              info.param.in_place ? "InPlace" : "Staged");
                         });

TEST(SharedMemory, OtherReductions) {
  run_rank_threads(3, [](Group& group) {
    for (const auto& [op, expected] :
         {std::pair{ReduceOp::product, 24.0}, {ReduceOp::min, 2.0}, {ReduceOp::max, 4.0}}) {
      Tensor tensor = at::full({5}, group.rank() + 2, at::kBFloat16);
      group.all_reduce(tensor, op).wait();
      EXPECT_EQ(tensor[4].item<double>(), expected);
    }
  });
}

TEST(SharedMemory, UnsupportedReductionsAreRefused) {
  run_rank_threads(2, [](Group& group) {
    EXPECT_THAT(message_of<DistributedError>([&] { group.all_reduce(at::ones({5}, at::kBool)).wait(); }),
                has_all("all_reduce [5] bool #0 of group world", "could not start", "Bool tensors"));
    Tensor flags = at::full({5}, group.rank() == 1, at::kBool);
    group.broadcast(flags, 1).wait();
    EXPECT_TRUE(flags.all().item<bool>());
  });
}

// Some ranks' tensors lie in their segments and others' do not; some calls are large and some have no data.
TEST(SharedMemory, ManyCallsInFlightAreWaitedForInAnyOrder) {
  run_rank_threads(3, [](Group& group) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 200; ++i) {
      const int64_t n = i % 7 == 0 ? 200'000 : i % 5;
      tensors.push_back((group.rank() + i) % 2 == 0 ? group.allocator()(n, at::kFloat, at::kCPU)
                                                    : at::empty({n}));
      tensors.back().fill_(i + group.rank());
      works.push_back(group.all_reduce(tensors.back()));
    }
    for (size_t i = works.size(); i-- > 0;) works[(i * 77) % works.size()].wait();
    for (int i = 0; i < 200; ++i) {
      const Tensor& tensor = tensors[static_cast<size_t>(i)];
      EXPECT_TRUE(at::equal(tensor, at::full_like(tensor, 3 * i + 3))) << i;
    }
  });
}

TEST(SharedMemory, MessagesKeepTheirOrderUnderEachTag) {
  run_rank_threads(2, [](Group& group) {
    constexpr int messages = 90;  // more than fit
    if (group.rank() == 0) {
      for (int i = 0; i < messages; ++i) group.send(at::full({i}, i), 1, i % 3).wait();
      return;  // messages outlive the group of their sender
    }
    for (int tag = 0; tag < 3; ++tag) {
      for (int i = tag; i < messages; i += 3) {
        Tensor tensor = at::zeros({i}, at::kLong);
        group.recv(tensor, 0, tag).wait();
        EXPECT_TRUE(at::equal(tensor, at::full({i}, i)));
      }
    }
  });
}

// Rank 0 leaves with a call that rank 1 has not made, and messages for which there was no room until then.
TEST(SharedMemory, AGroupMayEndWithWaitingMessages) {
  run_rank_threads(2, [](Group& group) {
    std::vector<Work> works;
    if (group.rank() == 0) {
      for (size_t i = 0; i < SharedControl::max_messages + 10; ++i)
        works.push_back(group.send(at::ones({1000}), 1));
      works.push_back(group.all_reduce(at::ones({4})));
      return;
    }
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const Tensor tensor = at::zeros({1000});
      group.recv(tensor, 0).wait();
      EXPECT_EQ(tensor.sum().item<float>(), 1000);
    }
  });
}

TEST(SharedMemory, AMessageOfAnotherSizeIsRefused) {
  run_rank_threads(2, [](Group& group) {
    if (group.rank() == 0) return group.send(at::ones({4}), 1).wait();
    EXPECT_THAT(message_of<DistributedError>([&] { group.recv(at::ones({5}), 0).wait(); }),
                has_all("rank 0 sent 16 bytes of Float", "receives 20 bytes of Float"));
  });
}

TEST(SharedMemory, DifferentCallsAreNamed) {
  std::vector<std::string> messages(2);
  run_rank_threads(2, [&](Group& group) {
    try {
      Tensor output = at::empty({8});
      if (group.rank() == 0) group.all_reduce(output).wait();
      if (group.rank() == 1) group.all_gather(output, at::ones({4})).wait();
    } catch (const DistributedError& error) {
      messages[static_cast<size_t>(group.rank())] = error.what();
    }
  });
  for (const std::string& text : messages) {
    EXPECT_THAT(text, HasSubstr("all_reduce of 8 float32"));
    EXPECT_THAT(text, HasSubstr("all_gather of 4 float32"));
    EXPECT_THAT(text, HasSubstr("the same calls in the same order"));
  }
}

TEST(SharedMemory, CallsThatDifferOnlyInTheRootAreNamed) {
  run_rank_threads(2, [&](Group& group) {
    EXPECT_THAT(message_of<DistributedError>([&] { group.broadcast(at::ones({8}), group.rank()).wait(); }),
                has_all("broadcast of 8 float32 (root 0)", "broadcast of 8 float32 (root 1)"));
  });
}

TEST(SharedMemory, AllRanksNameARankThatLeftAtOnce) {
  GroupOptions options;
  options.deadline = std::chrono::hours(1);
  run_rank_threads(3, options, [](Group& group) {
    group.barrier();
    if (group.rank() == 1) return;
    for (int attempt = 0; attempt < 2; ++attempt) {  // a failed group stays failed
      EXPECT_THAT(message_of<DistributedError>([&] { group.all_reduce(at::ones({2})).wait(); }),
                  HasSubstr("rank 1 has left the group"));
    }
  });
}

TEST(SharedMemory, TensorsOutliveTheGroup) {
  Tensor kept;
  run_rank_threads(2, [&](Group& group) {
    Tensor tensor = group.allocator()(1'000'000, at::kFloat, at::kCPU);
    EXPECT_EQ(tensor.sum().item<float>(), 0);
    tensor.fill_(group.rank() + 1);
    group.all_reduce(tensor).wait();
    if (group.rank() == 1) kept = tensor;
  });
  EXPECT_EQ(kept.sum().item<double>(), 3e6);
}

TEST(SharedMemory, FreedMemoryIsReusedZeroed) {
  run_rank_threads(2, [](Group& group) {
    const Allocator allocator = group.allocator();
    const Tensor first = allocator(1000, at::kFloat, at::kCPU);
    for (int i = 0; i < 10; ++i) {
      Tensor small = allocator(5000, at::kInt, at::kCPU), large = allocator(3'000'000, at::kInt, at::kCPU);
      EXPECT_EQ(small.sum().item<int64_t>() + large.sum().item<int64_t>(), 0);
      EXPECT_LT(
          static_cast<const char*>(large.const_data_ptr()) - static_cast<const char*>(first.const_data_ptr()),
          40 << 20);
      small.fill_(1);
      large.fill_(1);
    }
  });
}

size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

size_t shared_mappings() {
  const std::string maps = read_file("/proc/self/maps");
  size_t count = 0;
  for (size_t at = maps.find("memfd:stretto"); at != std::string::npos;
       at = maps.find("memfd:stretto", at + 1))
    ++count;
  return count;
}

TEST(SharedMemory, ScratchIsUsedAgain) {
  run_rank_threads(2, [](Group& group) {
    const auto scratch = [&](int64_t rows) { return group.scratch({rows, 100}, at::kFloat); };
    const void* first = nullptr;
    {
      const Tensor tensor = scratch(1000), other = scratch(1000);
      first = tensor.const_data_ptr();
      EXPECT_NE(first, other.const_data_ptr());
      EXPECT_NE(scratch(3000).const_data_ptr(), first);
    }
    const Tensor again = scratch(1005), beside = scratch(1000);
    EXPECT_TRUE(again.const_data_ptr() == first || beside.const_data_ptr() == first);
    again.fill_(group.rank() + 1);
    group.all_reduce(again).wait();
    EXPECT_TRUE(again.eq(3).all().item<bool>());
    EXPECT_EQ(group.scratch({3, 0}, at::kFloat).numel(), 0);
    EXPECT_EQ(group.scratch({2, 2}, at::kDouble).sizes(), at::IntArrayRef({2, 2}));
  });
}

TEST(SharedMemory, GroupsFreeTheirMemory) {
  const size_t files = open_files();
  for (int i = 0; i < 20; ++i) {
    run_rank_threads(3, [](Group& group) {
      const auto pair = group.subgroup({0, 2}, "pair");
      Tensor tensor = group.allocator()(100'000, at::kFloat, at::kCPU);
      group.all_reduce(tensor).wait();
      if (pair) pair->all_reduce(tensor).wait();
    });
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(shared_mappings(), 0u);
}

}  // namespace
}  // namespace stretto::comm
