#include "stretto/base/sealed_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(SealedMemory, EveryReaderGetsItsBytes) {
  const std::string bytes = std::string("a\0b", 3) + std::string(100'000, 'x');
  const Fd file = make_sealed_memory("test", bytes);
  EXPECT_EQ(read_sealed_memory(file.get()), bytes);
  EXPECT_EQ(read_sealed_memory(file.get()), bytes) << "reading must not move the shared file offset";
  EXPECT_EQ(read_sealed_memory(make_sealed_memory("empty", "").get()), "");
}

TEST(SealedMemory, CannotBeModified) {
  const Fd file = make_sealed_memory("test", "abc");
  EXPECT_LT(::pwrite(file.get(), "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(file.get(), 1), 0);
  EXPECT_EQ(read_sealed_memory(file.get()), "abc");
}

TEST(SealedMemory, IsInheritedAcrossExec) {
  const Fd file = make_sealed_memory("test", "abc");
  EXPECT_EQ(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SealedMemory, OtherDescriptorsAreRejected) {
  EXPECT_EQ(read_sealed_memory(-1), std::nullopt);
  const Fd null(::open("/dev/null", O_RDONLY));
  EXPECT_EQ(read_sealed_memory(null.get()), std::nullopt);
}

}  // namespace
}  // namespace stretto
