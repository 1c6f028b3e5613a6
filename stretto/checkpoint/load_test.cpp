#include "stretto/checkpoint/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/checkpoint_fixture.h"

namespace stretto::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Checkpoint, AnotherModelIsNamed) {
  const TempFolder folder;
  save_state(folder.path(), 1, on_each_rank);
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  const auto with = [&](const std::function<void(State&)>& change) {
    State state = replicated_state(1);
    change(state);
    return load_error(path, state);
  };
  EXPECT_THAT(with([](State& s) {
                s.tensors[0].shape = {4, 30};
              }),
              HasSubstr("tensor model.w is [30, 4] there and [4, 30] here"));
  EXPECT_THAT(with([](State& s) { s.tensors[1].dtype = at::kDouble; }),
              has_all("tensor model.b is F32 there and F64 here", "set precision"));
  EXPECT_THAT(with([](State& s) { s.tensors[1].name = "model.c"; }), HasSubstr("it has no tensor model.c"));
  EXPECT_THAT(with([](State& s) { s.tensors.pop_back(); }),
              HasSubstr("it has a tensor model.none that this run has not"));
}

TEST(Checkpoint, DamageIsFoundWhileLoading) {
  const TempFolder folder;
  save_state(folder.path(), 1, on_each_rank);
  const auto path = checkpoint_format::checkpoint_path(folder.path(), 5);
  const auto file = path / "rank-00000.safetensors";
  const std::string whole = read_file(file);
  std::string bytes = whole;
  bytes[bytes.size() - 100] ^= 1;
  write_file_atomic(file, bytes);
  EXPECT_THAT(load_error(path, replicated_state(1)),
              AllOf(HasSubstr(file.string()), HasSubstr("tensor model.w is damaged")));
  write_file_atomic(file, whole.substr(0, whole.size() - 8));
  EXPECT_THAT(load_error(path, replicated_state(1)), HasSubstr("truncated"));
}

}  // namespace
}  // namespace stretto::checkpoint
