#include "tests/support/file_fault.h"

#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

using file_faults::Effect;
using file_faults::Fault;
using testing::ExitedWithCode;
using testing::HasSubstr;

TEST(FileFault, Syntax) {
  const Fault full = parse_file_fault("enospc@17+:path=checkpoints", "").value();
  EXPECT_EQ(full.call, 17);
  EXPECT_EQ(full.effect, Effect::error);
  EXPECT_EQ(full.error, ENOSPC);
  EXPECT_TRUE(full.sticky);
  EXPECT_EQ(full.path, "checkpoints");
  const Fault killed = parse_file_fault("kill-after@12:rank=1", "1").value();
  EXPECT_EQ(killed.effect, Effect::kill_after);
  EXPECT_FALSE(killed.sticky);
  EXPECT_EQ(killed.path, "");
  EXPECT_FALSE(parse_file_fault("kill@12:rank=1", "0"));
  EXPECT_FALSE(parse_file_fault("kill@12:rank=1", ""));  // a launcher
  for (const char* text :
       {"", "enospc", "enospc@", "enospc@0", "nospace@3", "eio@3@4", "eio@3:host=a", "eio@3:rank=x"}) {
    EXPECT_THAT(message_of<std::invalid_argument>([&] { parse_file_fault(text, ""); }),
                HasSubstr("as in enospc@17 or kill@12:rank=1"))
        << text;
  }
}

// This program exports the function that others preload.
TEST(FileFault, IsReadAtTheFirstCall) {
  const TempFolder folder;
  const auto in_a_new_process = [&](const char* fault) {
    ::setenv("STRETTO_FILE_FAULT", fault, 1);
    file_faults::state = file_faults::State::unknown;  // as in a process before its first write
    try {
      write_file_atomic(folder.path() / "a", "content");
    } catch (const Error& error) {
      fmt::print(stderr, "{}", error.what());
      ::_exit(error.exit_code());
    }
    ::_exit(0);
  };
  EXPECT_EXIT(in_a_new_process("enospc@2"), ExitedWithCode(1), "No space left on device");
  EXPECT_EXIT(in_a_new_process("kill@2"), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(in_a_new_process("enospc@99"), ExitedWithCode(0), "");
  EXPECT_EXIT(in_a_new_process("nonsense"), ExitedWithCode(2), "STRETTO_FILE_FAULT=nonsense");
}

}  // namespace
}  // namespace stretto
