#include <csignal>
#include <cstdio>

#include "tests/train/run_states.h"
#include "tests/train/thread_workspace.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"

// A run is killed in one of its writes, for each write in turn, and is resumed from the files on disk.
namespace stretto {
namespace {

using file_faults::Fault;

class Replay : public RunStates<ThreadWorkspace> {
 protected:
  explicit Replay(int ranks = 1, const std::string& mesh = "") : ranks_(ranks) { settings_ += mesh; }

  // The model has one block and the optimizer no state, so that a save has few writes; saves are synchronous,
  // so that the n-th write is the same in each run. Step 4 is the last of an epoch: the model is evaluated
  // and saved.
  void SetUp() override {
    auto config = nlohmann::json::parse(workspace_.read("model/config.json"));
    config["num_hidden_layers"] = 1;
    workspace_.write("model/config.json", config.dump());
    ASSERT_EQ(run("whole", {}, "checkpoint.keep_last=0"), 0);
  }

  // Prepares a run that has taken three steps; the next step removes the older of its checkpoints.
  void begin() const {
    std::filesystem::remove_all(path("run"));
    make_folders(path("run/checkpoints"));
    for (const int64_t step : {2, 3}) {
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
  std::string settings_ =
      "training.precision=fp32 training.max_steps=6 optimizer.type=SGD checkpoint.every=1 checkpoint.async=false ";
};

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

// Layers are divided among two ranks, and shards of their parts among two more.
class ReplayOnAMesh : public Replay {
 protected:
  ReplayOnAMesh() : Replay(4, "training.mesh.tp=2 training.strategy=fsdp ") {}
};

TEST_F(ReplayOnAMesh, DyingInAWriteChangesNoBit) {
  int deaths = 0;
  for (int write = 3;; write += 37) {
    SCOPED_TRACE(fmt::format("write {}", write));
    begin();
    const int code = run("run", {.call = write, .effect = file_faults::Effect::torn_write});
    if (code == 0) break;  // it has fewer writes
    ASSERT_EQ(code, 128 + SIGKILL);
    EXPECT_GE(newest_good(), 3);
    ++deaths;
    ASSERT_EQ(run("run", {}), 0);
    expect_same(state_of("run", 6), state_of("whole", 6));
    EXPECT_TRUE(workspace_.read("run/model/model.safetensors") ==
                workspace_.read("whole/model/model.safetensors"));
  }
  EXPECT_GT(deaths, 5);
}

}  // namespace
}  // namespace stretto
