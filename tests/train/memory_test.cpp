// The memory of whole programs, measured as the proportional set size: what processes share is divided among
// them.
#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <thread>
#include <tuple>

#include "tests/train/workspace.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace stretto {
namespace {

// The MiB of a process that are not backed by a file. 0: none, or not measured.
struct Memory {
  double own = 0, shared = 0;
};

Memory memory_of(pid_t process) {
  std::istringstream rollup(read_proc(fmt::format("/proc/{}/smaps_rollup", process)));
  Memory memory;
  for (std::string word; rollup >> word;) {
    double kib = 0;
    if (word == "Pss_Anon:" && rollup >> kib) memory.own = kib / 1024;
    if (word == "Pss_Shmem:" && rollup >> kib) memory.shared = kib / 1024;
  }
  return memory;
}

struct Peaks {
  double rank = 0, sum = 0;  // MiB: the largest of any rank, and of all ranks together
};

// Returns the peaks of the ranks of `command`, which must succeed. Each rank is charged its part of shared
// memory; otherwise the last one to end would be charged all of it.
Peaks peaks_of(const std::string& command) {
  BackgroundShell run(command);
  Peaks peaks;
  size_t count = 0;
  while (run.running()) {
    const auto began = std::chrono::steady_clock::now();
    double own = 0, sum_own = 0, shared = 0;
    const auto ranks = children_of(run.pid());
    count = std::max(count, ranks.size());
    for (const pid_t rank : ranks) {
      const Memory memory = memory_of(rank);
      own = std::max(own, memory.own);
      sum_own += memory.own;
      shared += memory.shared;
    }
    if (count > 0) peaks.rank = std::max(peaks.rank, own + shared / static_cast<double>(count));
    peaks.sum = std::max(peaks.sum, sum_own + shared);
    // Reading the pages of all ranks takes as long as a step, and holds them up.
    const auto read = std::chrono::steady_clock::now() - began;
    std::this_thread::sleep_for(std::max<std::chrono::nanoseconds>(std::chrono::milliseconds(5), 3 * read));
  }
  const ShellResult result = run.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return peaks;
}

bool measures() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;  // a sanitizer's shadow memory is counted
#else
  return memory_of(::getpid()).own > 0;
#endif
}

// A model of 18 million parameters in blocks of 2 MiB: a rank gathers about 20 MiB at a time.
constexpr double model_mib = 68.7;
constexpr const char* deep_config = R"({"model_type": "bert", "vocab_size": 64, "hidden_size": 256,
  "num_hidden_layers": 34, "num_attention_heads": 4, "intermediate_size": 512, "max_position_embeddings": 32})";

// Returns the shell command of a run into the folder `name`. It takes three steps, so that its peak is
// measured on a busy machine, too.
std::string short_run(const Workspace& workspace, const std::string& name, const std::string& more,
                      int ranks = 4) {
  return workspace.command(
      "train", ranks,
      fmt::format(
          "training.precision=fp32 training.max_steps=3 training.global_batch_size=4 data.max_length=8 data.max_validation_samples=4 "
          "evaluate.batch_size=4 output={} {}",
          workspace.path(name), more));
}

// Returns the memory that exceeds that of the same run with a tiny model.
Peaks peaks_above(const Peaks& base, const std::string& command) {
  const Peaks peaks = peaks_of(command);
  return {peaks.rank - base.rank, peaks.sum - base.sum};
}

// Memory is measured from the construction of the model to its last save. Under fsdp, a rank has half of the
// model's weights and gradients.
TEST(Memory, FsdpTrainsModelsThatDoNotFitOnARank) {
  if (!measures()) GTEST_SKIP() << "memory cannot be measured here";
  const Workspace workspace;
  const std::string sgd = "optimizer.type=SGD ", fsdp = sgd + "training.strategy=fsdp ";
  const Peaks base = peaks_of(short_run(workspace, "base", sgd));
  workspace.write("model/config.json", deep_config);
  EXPECT_GT(peaks_above(base, short_run(workspace, "ddp", sgd + "checkpoint.every=3")).rank, 1.8 * model_mib);
  const double limit = 0.95 * model_mib;
  EXPECT_LT(peaks_above(base, short_run(workspace, "shared", fsdp)).rank, limit);
  EXPECT_LT(peaks_above(base, short_run(workspace, "gathered", fsdp + "training.shared_parameters=off")).rank,
            limit);
  // The weights have to be converted.
  const std::string half = workspace.path("half");
  const ShellResult converted =
      shell(fmt::format("{} convert {} {} --dtype float16", STRETTO_PROGRAM, workspace.path("ddp"), half));
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  EXPECT_LT(
      peaks_above(base, short_run(workspace, "loaded", fsdp + "model.config=null model.path=" + half)).rank,
      limit);
}

// A rank of tp has its part of the weights and gradients, from the construction of the model to its last
// save, also of a model in a folder, whose weights it converts. One rank has twice the model.
TEST(Memory, LayersThatAreDividedTrainModelsThatDoNotFitOnARank) {
  if (!measures()) GTEST_SKIP() << "memory cannot be measured here";
  const Workspace workspace;
  const std::string tiny = workspace.read("model/config.json");
  const std::string written = workspace.path("new/model"), half = workspace.path("half");
  for (const auto& [ranks, limit, read] : {std::tuple(2, 1.55, written), {4, 0.95, half}}) {
    const std::string tp = fmt::format("optimizer.type=SGD training.mesh.tp={} resume=false ", ranks);
    workspace.write("model/config.json", tiny);
    const Peaks base = peaks_of(short_run(workspace, "base", tp, ranks));
    workspace.write("model/config.json", deep_config);
    const auto above = [&](const std::string& run, const std::string& more) {
      return peaks_above(base, short_run(workspace, run, tp + more, ranks)).rank / model_mib;
    };
    EXPECT_LT(above("new", ""), limit) << ranks;
    if (read == half) {
      const ShellResult converted =
          shell(fmt::format("{} convert {} {} --dtype float16", STRETTO_PROGRAM, written, half));
      ASSERT_EQ(converted.exit_code, 0) << converted.err;
    }
    EXPECT_LT(above("read", "model.config=null model.path=" + read), limit) << ranks << " " << read;
    EXPECT_TRUE(workspace.has("read/model/model.safetensors"));
  }
}

// Expects that one call of `stretto plan` predicts the memory of all ranks of runs with these strategies.
void expect_planned(const Workspace& workspace, const std::vector<std::string>& strategies, int ranks,
                    const std::string& more) {
  std::string command =
      short_run(workspace, "plan", fmt::format("training.strategy={} {}", strategies[0], more), ranks);
  command.replace(command.find(" train "), 7, " plan ");
  const ShellResult json = shell(command + " --steps 2 --json");
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto plan = nlohmann::json::parse(json.out);
  std::map<std::string, double> planned;
  for (const auto& row : plan.at("strategies"))
    planned[row.at("strategy")] = row.at("bytes_per_host").get<double>() / (1 << 20);
  for (const std::string& strategy : strategies) {
    const std::string settings = fmt::format("training.strategy={} {}", strategy, more);
    const double measured = peaks_of(short_run(workspace, "run", settings + " resume=false", ranks)).sum;
    EXPECT_NEAR(planned[strategy], measured, 0.1 * measured) << settings;
  }
}

// Writes the configuration of a model that has a word embedding table of 59 MiB, of which the data use a few
// rows.
void write_wide_table(const Workspace& workspace) {
  std::string config = deep_config;
  config.replace(config.find("64"), 2, "60000");
  workspace.write("model/config.json", config);
}

// Under ddp, the rows without data need no memory for gradients and moments.
TEST(Memory, IsWhatThePlannerPredicts) {
  if (!measures()) GTEST_SKIP() << "memory cannot be measured here";
  const Workspace workspace;
  write_wide_table(workspace);
  expect_planned(workspace, {"ddp", "zero1", "zero2", "fsdp"}, 2, "");
  expect_planned(workspace, {"fsdp"}, 2, "training.shared_parameters=off");
  expect_planned(workspace, {"hsdp"}, 4, "training.dp_shard=2");
}

// A rank has its part of each layer, and of the rows between layers if it divides them, and all rows of its
// part of the table.
TEST(Memory, IsWhatThePlannerPredictsOfAMesh) {
  if (!measures()) GTEST_SKIP() << "memory cannot be measured here";
  const Workspace workspace;
  write_wide_table(workspace);
  expect_planned(workspace, {"ddp"}, 2, "training.mesh.tp=2 training.mesh.sequence_parallel=true");
  expect_planned(workspace, {"ddp", "zero1"}, 4, "training.mesh.tp=2");
}

// AdamW's moments are twice the model.
TEST(Memory, OptimizerStateInFilesIsNotInMemory) {
  if (!measures()) GTEST_SKIP() << "memory cannot be measured here";
  const Workspace workspace;
  workspace.write("model/config.json", deep_config);
  std::filesystem::create_directory(workspace.path("disk"));
  const Peaks in_memory = peaks_of(short_run(workspace, "memory", "", 2));
  const Peaks in_files =
      peaks_of(short_run(workspace, "files", "training.offload_optimizer=" + workspace.path("disk"), 2));
  EXPECT_LT(in_files.rank, in_memory.rank - 1.8 * model_mib);
}

}  // namespace
}  // namespace stretto
