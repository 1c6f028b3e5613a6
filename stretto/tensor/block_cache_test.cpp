#include "stretto/tensor/block_cache.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stretto/tensor/tensor.h"

namespace stretto {
namespace {

constexpr size_t mib = size_t{1} << 20;

// Each test starts with an empty cache.
class BlockCache : public ::testing::Test {
 protected:
  BlockCache() {
    reuse_tensor_memory();
    trim_tensor_memory();
  }
  size_t in_use_ = tensor_memory().in_use;
};

Tensor bytes(size_t count) { return at::empty({static_cast<int64_t>(count)}, at::kByte); }

TEST_F(BlockCache, ReusesFreedBlocks) {
  void* first = nullptr;
  {
    const Tensor block = bytes(5 * mib).fill_(7);
    first = block.data_ptr();
    EXPECT_EQ(tensor_memory().in_use, in_use_ + 5 * mib);
  }
  EXPECT_EQ(tensor_memory().in_use, in_use_);
  EXPECT_GE(tensor_memory().kept, 5 * mib);
  EXPECT_EQ(bytes(5 * mib - 1000).data_ptr(), first) << "nearly the same size";
  EXPECT_NE(bytes(2 * mib).data_ptr(), first) << "less than two thirds of it";
  EXPECT_EQ(at::zeros({5 * mib}, at::kByte).sum().item<int64_t>(), 0) << "zeros() must clear a cached block";
}

TEST_F(BlockCache, IsBoundedByPeakUseAndReleasesTheOldest) {
  bytes(320 * mib);
  const size_t most_in_use = in_use_ + 320 * mib;
  EXPECT_EQ(tensor_memory().kept, 320 * mib);
  void* newer = bytes(128 * mib).data_ptr();
  EXPECT_EQ(tensor_memory().kept, 128 * mib)
      << "the larger block was too large to be reused and was released";
  bytes(64 * mib);
  EXPECT_EQ(bytes(128 * mib).data_ptr(), newer);
  EXPECT_LE(tensor_memory().in_use + tensor_memory().kept, most_in_use * 5 / 4);
}

// Activations of batches of varying lengths.
TEST_F(BlockCache, BlocksGrowToTheLargestOfSimilarSizes) {
  const auto use = [](size_t size) {
    std::vector<Tensor> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(bytes(size));
  };
  use(6 * mib);
  EXPECT_EQ(tensor_memory().kept, 24 * mib);
  use(10 * mib);
  EXPECT_EQ(tensor_memory().kept, 40 * mib) << "the smaller blocks were replaced";
  use(6 * mib);
  EXPECT_EQ(tensor_memory().kept, 40 * mib) << "the larger blocks were reused";
}

TEST_F(BlockCache, TrimReleasesEverything) {
  const Tensor used = bytes(3 * mib).fill_(1);
  bytes(5 * mib);
  trim_tensor_memory();
  EXPECT_EQ(tensor_memory().kept, 0);
  EXPECT_EQ(used.const_data_ptr<uint8_t>()[3 * mib - 1], 1) << "used memory is not released";
  bytes(128 * mib);
  EXPECT_EQ(tensor_memory().kept, 128 * mib);
}

TEST_F(BlockCache, BlocksDoNotOverlap) {
  std::vector<Tensor> blocks;
  for (size_t i = 0; i < 40; ++i) {
    blocks.push_back(bytes(1000 + i * i * 30'000).fill_(static_cast<int64_t>(i)));
    if (i % 3 == 2) blocks[i - 1].reset();
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].defined()) {
      EXPECT_TRUE(blocks[i].eq(static_cast<int64_t>(i)).all().item<bool>()) << i;
    }
  }
}

TEST_F(BlockCache, TensorsGrowInIt) {
  Tensor grown = at::ones({200'000});
  grown.resize_({900'000});
  EXPECT_EQ(grown.slice(0, 0, 200'000).sum().item<double>(), 200'000);
  EXPECT_EQ(at::empty({0}).numel(), 0);
}

TEST_F(BlockCache, IsThreadSafe) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (size_t i = 0; i < 200; ++i) {
        const Tensor block = bytes(100'000 * (1 + i % 5)).fill_(t);
        EXPECT_TRUE(block.eq(t).all().item<bool>());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tensor_memory().in_use, in_use_);
}

}  // namespace
}  // namespace stretto
