#include "stretto/launch/process/command_line.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto::launch {
namespace {

TEST(CommandLine, NamesTheFileThatRunsAndTheArguments) {
  const std::vector<std::string> given = command_line(), command = own_command();
  ASSERT_FALSE(command.empty());
  EXPECT_TRUE(std::filesystem::path(command[0]).is_absolute());
  EXPECT_TRUE(std::filesystem::equivalent(command[0], "/proc/self/exe"));
  EXPECT_EQ(std::filesystem::path(given[0]).filename(), std::filesystem::path(command[0]).filename());
  EXPECT_EQ(std::vector(given.begin() + 1, given.end()), std::vector(command.begin() + 1, command.end()));
}

}  // namespace
}  // namespace stretto::launch
