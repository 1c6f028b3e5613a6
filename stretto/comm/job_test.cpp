#include "stretto/comm/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::comm {
namespace {

at::Device chosen(const std::string& wanted, int gpus, int local_rank = 1) {
  cluster::RankInfo info;
  info.local_rank = local_rank;
  info.local_world_size = 2;
  return choose_device(wanted, "training.device", info, gpus);
}

TEST(Device, AutoIsTheRanksGpuIfEachRankHasOne) {
  EXPECT_EQ(chosen("auto", 2), at::Device(at::kCUDA, 1));
  EXPECT_EQ(chosen("auto", 4, 0), at::Device(at::kCUDA, 0));
  EXPECT_EQ(chosen("auto", 1, 0), at::Device(at::kCPU));
  EXPECT_EQ(chosen("auto", 1, 1), at::Device(at::kCPU));
  EXPECT_EQ(chosen("auto", 0), at::Device(at::kCPU));
}

TEST(Device, CpuIsTheCpu) { EXPECT_EQ(chosen("cpu", 8), at::Device(at::kCPU)); }

TEST(Device, CudaNeedsAGpuForEachRank) {
  EXPECT_EQ(chosen("cuda", 2), at::Device(at::kCUDA, 1));
  EXPECT_THAT(message_of<ConfigError>([&] { chosen("cuda", 1, 0); }),
              has_all("training.device: cuda: ", "1 GPU for 2 ranks", "at most 1 (-N 1)", "use cpu"));
  EXPECT_THROW(chosen("cuda", 0), ConfigError);
}

TEST(Backend, AutoFollowsTheDeviceAndOthersNeedTheCpu) {
  EXPECT_EQ(choose_backend("auto", "backend", at::kCPU, "device"), "shm");
  EXPECT_EQ(choose_backend("auto", "backend", at::kCUDA, "device"), "nccl");
  EXPECT_EQ(choose_backend("gloo", "backend", at::kCPU, "device"), "gloo");
  EXPECT_THAT(message_of<ConfigError>([] { choose_backend("gloo", "backend", at::kCUDA, "device"); }),
              has_all("backend: gloo ", "GPUs", "use auto, or device: cpu"));
}

}  // namespace
}  // namespace stretto::comm
