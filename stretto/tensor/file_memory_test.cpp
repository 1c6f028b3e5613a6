#include "stretto/tensor/file_memory.h"

#include <cerrno>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// MiB of this process's resident memory that belong to files.
int64_t resident_mib() {
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string word; status >> word;) {
    if (word == "RssFile:" || word == "RssShmem:") {  // the folder may be in memory (tmpfs)
      int64_t value = 0;
      status >> value;
      kib += value;
    }
  }
  return kib / 1024;
}

TEST(FileMemory, KeepsItsContentOutsideOfResidentMemory) {
  const TempFolder folder;
  Tensor memory = file_memory(folder.path(), 16 << 20, at::kFloat);
  EXPECT_EQ(memory.abs().max().item<float>(), 0);
  memory.fill_(3);
  memory[5] = 7;
  const int64_t before = resident_mib();
  leave_to_file(memory);
  EXPECT_LE(resident_mib(), before - 60);
  EXPECT_EQ(memory[5].item<float>(), 7);
  EXPECT_EQ(memory.sum().item<float>(), 3 * memory.numel() + 4);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the file has no name";
  EXPECT_EQ(file_memory(folder.path(), 0, at::kDouble).numel(), 0);
}

TEST(FileMemory, ReleasedPartsKeepTheirNeighbours) {
  const TempFolder folder;
  Tensor memory = file_allocator(folder.path())(10'000, at::kDouble, at::kCPU);
  memory.copy_(at::arange(10'000));
  leave_to_file(memory.slice(0, 3, 9'999));
  leave_to_file(memory.slice(0, 3, 5));
  EXPECT_TRUE(memory.equal(at::arange(10'000, at::kDouble)));
}

TEST(FileMemory, ASignalDoesNotEndTheReservation) {
  const TempFolder folder;
  const file_faults::Injection interrupted({.call = 2, .error = EINTR});
  EXPECT_EQ(file_memory(folder.path(), 8, at::kFloat).numel(), 8);
  EXPECT_EQ(interrupted.calls(), 3);
}

TEST(FileMemory, ReportsAFullDiskAndAMissingFolder) {
  const TempFolder folder;
  for (const int64_t call : {1, 2}) {
    const file_faults::Injection full({.call = call, .error = ENOSPC});
    EXPECT_THAT(
        message_of<IoError>([&] { file_memory(folder.path(), 1 << 20, at::kFloat); }),
        AllOf(HasSubstr(folder.path().string()), HasSubstr("4.0 MiB"), HasSubstr("No space left on device")));
  }
  EXPECT_THAT(message_of<IoError>([&] { file_memory(folder.path() / "gone", 8, at::kFloat); }),
              HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace stretto
