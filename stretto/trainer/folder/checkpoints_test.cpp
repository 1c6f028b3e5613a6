#include "stretto/trainer/folder/checkpoints.h"

#include <chrono>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stretto/base/fd.h"
#include "stretto/base/temp_folder.h"
#include "stretto/checkpoint/shared_folder.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/comm/holders.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

struct UntrainedModule : Module {
  Loss training_step(const Batch&, StepContext&) override { return {}; }
};

// A second path of a folder in a file system that is not local, /proc. It is there once appear() was called.
class LatePath {
 public:
  explicit LatePath(std::filesystem::path folder) : folder_(std::move(folder)) {}
  static std::filesystem::path path() { return fmt::format("/proc/self/fd/{}", number); }

  void appear() {
    const Fd opened(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::dup2(opened.get(), number), number);
    fd_ = Fd(number);
  }

 private:
  static constexpr int number = 700;  // no test opens so many files
  std::filesystem::path folder_;
  Fd fd_;
};

// Whether rank 0 looks for the ranks that see its folder, which has `checkpoints` and in it a file of a
// random name.
bool is_asking(const std::filesystem::path& checkpoints) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, failed))
    if (entry.path().filename().string().starts_with(".shared-")) return true;
  return false;
}

// Saves by two ranks, of which the second finds the output folder late. Returns the reason of a failure.
std::string save_late(const std::filesystem::path& folder, double patience) {
  LatePath late(folder);
  std::thread later([&] {
    if (patience == 0) return;
    while (!is_asking(folder / "checkpoints")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    late.appear();
  });
  std::string failure;
  comm::run_rank_threads(2, [&](Group& group) {
    Recipe recipe;
    recipe.output = group.rank() == 0 ? folder : LatePath::path();
    recipe.checkpoint.folder_patience = patience;
    const Mesh mesh = make_mesh(recipe, group);
    const UntrainedModule module;
    Checkpoints checkpoints(recipe, mesh, module, /*holds_state=*/false);
    State state;
    state.tensors.push_back(whole_entry("model.w", {2}, at::ones({2}), comm::holders_of(group)));
    StepReport report;
    report.step = 1;
    checkpoints.save(state, report, /*last=*/true, {});
    const std::string reason = checkpoints.finish();
    if (group.rank() == 0) failure = reason;
  });
  later.join();
  return failure;
}

TEST(Checkpoints, RanksLookForTheFolderForItsPatience) {
  const TempFolder patient, hasty;
  EXPECT_EQ(save_late(patient.path(), 60), "");
  EXPECT_EQ(checkpoint_format::list_checkpoints(patient.path() / "checkpoints").size(), 1u);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(save_late(hasty.path(), 0), HasSubstr("rank 1: "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, checkpoint::SharedFolder::default_patience);
  EXPECT_TRUE(checkpoint_format::list_checkpoints(hasty.path() / "checkpoints").empty());
}

}  // namespace
}  // namespace stretto::trainer
