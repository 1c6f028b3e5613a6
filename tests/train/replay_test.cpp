#include <csignal>
#include <cstdio>
#include <random>

#include "tests/train/meshes.h"
#include "tests/train/run_states.h"
#include "tests/train/thread_workspace.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"

// A run is killed in one of its writes, and is resumed from the files on disk.
namespace stretto {
namespace {

using file_faults::Fault;

class Replay : public RunStates<ThreadWorkspace> {
 protected:
  // By default the optimizer has no state, so that a save has few writes, and saves are synchronous, so that
  // the n-th write is the same in each run.
  explicit Replay(int ranks = 1, const std::string& settings = "optimizer.type=SGD checkpoint.async=false ")
      : ranks_(ranks),
        settings_("training.precision=fp32 training.max_steps=6 checkpoint.every=1 " + settings + " ") {}

  // Step 4 is the last of an epoch: the model is evaluated and saved.
  void SetUp() override {
    auto config = nlohmann::json::parse(workspace_.read("model/config.json"));
    config["num_hidden_layers"] = 1;
    workspace_.write("model/config.json", config.dump());
    ASSERT_EQ(run("whole", {}, "checkpoint.keep_last=0"), 0);
  }

  // Prepares a run with the checkpoints of these steps. By default the next step removes the older one.
  void begin(const std::vector<int64_t>& steps = {2, 3}) const {
    std::filesystem::remove_all(path("run"));
    make_folders(path("run/checkpoints"));
    for (const int64_t step : steps) {
      std::filesystem::copy(checkpoint("whole", step), checkpoint("run", step),
                            std::filesystem::copy_options::recursive);
    }
  }
  // Returns the exit code of a run in a child process, as a shell would give it. This process has no threads,
  // so fork() loses none.
  int run(const std::string& name, const Fault& fault, const std::string& settings = "") const {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 1;
      try {
        const file_faults::Injection injection(fault);
        workspace_.train(name, ranks_, settings_ + settings);
        code = 0;
      } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(code);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  void finish() const {
    ASSERT_EQ(run("run", {}), 0);
    for (const char* file : {"checkpoints/step-00000006/manifest.json",
                             "checkpoints/step-00000006/rank-00000.safetensors", "model/model.safetensors"}) {
      EXPECT_TRUE(workspace_.read(fmt::format("run/{}", file)) ==
                  workspace_.read(fmt::format("whole/{}", file)))
          << file;
    }
  }
  int64_t newest_good() const { return checkpoint_format::newest_good(path("run/checkpoints")).value().step; }
  bool has_leftovers() const {
    const std::filesystem::directory_iterator entries(path("run/checkpoints"));
    return std::distance(entries, {}) !=
           std::ssize(checkpoint_format::list_checkpoints(path("run/checkpoints")));
  }

  const int ranks_;  // threads
  const std::string settings_;
};

// For each write in turn.
TEST_F(Replay, DyingInAWriteLosesNothingThatWasSaved) {
  begin();
  int deaths_before_commit = 0;
  for (int write = 1;; ++write) {
    SCOPED_TRACE(fmt::format("write {}", write));
    ASSERT_EQ(run("run", {.call = write, .effect = file_faults::Effect::torn_write}), 128 + SIGKILL);
    if (newest_good() == 3) {  // the next run resumes from here
      ++deaths_before_commit;
      continue;
    }
    ASSERT_EQ(newest_good(), 4);
    const bool done = !has_leftovers();
    finish();
    if (done) break;  // the step, its model, its checkpoint, and the removal of an old one
    begin();
  }
  EXPECT_GT(deaths_before_commit, 80);
}

// All ranks of a mesh die in any write of one of them, while they compute. The next run continues from what
// is on disk.
class ReplayOnAMesh : public Replay, public ::testing::WithParamInterface<RunMesh> {
 protected:
  ReplayOnAMesh() : Replay(GetParam().ranks, GetParam().settings) {}

  void expect_whole() const {
    expect_same(state_of("run", 6), state_of("whole", 6));
    EXPECT_TRUE(workspace_.read("run/model/model.safetensors") ==
                workspace_.read("whole/model/model.safetensors"));
  }
};

TEST_P(ReplayOnAMesh, DyingInAnyWriteChangesNoBit) {
  std::mt19937 random(static_cast<unsigned>(GetParam().ranks));
  int further = 0;
  begin({1});  // rank threads share torch's generator: its first state is that of the last thread
  for (int deaths = 0; deaths < 3;) {
    const int write = 1 + static_cast<int>(random() % 400);
    SCOPED_TRACE(fmt::format("death {} in write {}", deaths + 1, write));
    const int code = run("run", {.call = write, .effect = file_faults::Effect::torn_write});
    if (code == 128 + SIGKILL) {
      ++deaths;
      if (newest("run") > 1) ++further;
      continue;
    }
    ASSERT_EQ(code, 0);
    expect_whole();
    begin({1});
  }
  EXPECT_GT(further, 0) << "runs died before they saved a step";
  ASSERT_EQ(run("run", {}), 0);
  expect_whole();
}

INSTANTIATE_TEST_SUITE_P(Meshes, ReplayOnAMesh, ::testing::ValuesIn(run_meshes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stretto
