#include "stretto/compat/llama_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::compat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path examples = std::filesystem::path(STRETTO_SOURCE_DIR) / "examples/llama";

class LlamaJobs : public ::testing::Test {
 protected:
  LlamaJobs() {
    make_folders(folder_.path() / "model");
    write_file_atomic(folder_.path() / "model/config.json", "{}");
  }
  LlamaJob read(const std::string& flags, const std::string& torchrun = "--nproc_per_node 8") const {
    write_file_atomic(folder_.path() / "job.sh",
                      "torchrun " + torchrun + " run_llama_nxd_ptl.py --model_path model " + flags + "\n");
    return read_llama_job(folder_.path() / "job.sh", {});
  }
  std::string error(const std::string& flags, const std::string& torchrun = "--nproc_per_node 8") const {
    return message_of<ConfigError>([&] { read(flags, torchrun); });
  }

  TempFolder folder_;
};

TEST_F(LlamaJobs, The7bScriptIsRead) {
  const LlamaJob job = read_llama_job(examples / "7b/pretrain.sh", {});
  EXPECT_EQ(job.config, examples / "7b/config.json");
  EXPECT_EQ(job.hosts, 1);
  EXPECT_EQ(job.ranks_per_host, 32);
  EXPECT_EQ(job.tp, 8);
  EXPECT_EQ(job.groups(), 4);
  EXPECT_EQ(job.micro_batches, 256);
  EXPECT_EQ(job.global_batch(), 1024);
  EXPECT_EQ(job.length, 4096);
  EXPECT_EQ(job.strategy, "zero1");
  EXPECT_FALSE(job.recomputes);
  EXPECT_TRUE(job.divides_rows);
  EXPECT_THAT(job.refused, IsEmpty());
  const LlamaJob hosts = read_llama_job(
      examples / "7b/pretrain.sh", {{"SLURM_NTASKS", "16"}, {"SLURM_NODEID", "0"}, {"GLOBAL_BATCH", "512"}});
  EXPECT_EQ(hosts.hosts, 16);
  EXPECT_EQ(hosts.groups(), 64);
  EXPECT_EQ(hosts.micro_batches, 8);
}

TEST_F(LlamaJobs, The70bScriptIsRead) {
  EXPECT_THAT(message_of<ConfigError>([] { read_llama_job(examples / "70b/pretrain.sh", {}); }),
              has_all("pretrain.sh:33: $(($GLOBAL_BATCH / $DP)) divides by 0; GLOBAL_BATCH is 1024, ",
                      "DP is 0 (line 32: RANKS is 32, HOSTS is 1, TP is 32, PP is 4)", "--nodes"));
  const LlamaJob job =
      read_llama_job(examples / "70b/pretrain.sh", {{"SLURM_NTASKS", "32"}, {"SLURM_NODEID", "0"}});
  EXPECT_EQ(job.hosts, 32);
  EXPECT_EQ(job.tp, 32);
  EXPECT_EQ(job.pp, 4);
  EXPECT_EQ(job.groups(), 8);
  EXPECT_EQ(job.sequences, 1) << "a pipeline divides its batch into micro-batches";
  EXPECT_EQ(job.micro_batches, 128);
  EXPECT_THAT(job.refused,
              ElementsAre(HasSubstr("--pipeline_parallel_size 4: layers are not divided into stages")));
  const LlamaJob whole = job.arranged(32, 32, 32, 1);
  EXPECT_EQ(whole.groups(), 32);
  EXPECT_EQ(whole.global_batch(), 1024);
  EXPECT_THAT(message_of<ConfigError>([&] { job.arranged(2048, 32, 32, 1); }),
              has_all("2048 groups of ranks", "1024 sequences"));
  EXPECT_THAT(message_of<ConfigError>([&] { job.arranged(3, 32, 32, 2); }),
              has_all("96 ranks on 3 hosts", "groups of 64 (tp 32 x pp 2)"));
}

// Bash rounds quotients: the job trains on fewer sequences than it names, or on none.
TEST_F(LlamaJobs, SequencesThatGroupsCannotShareEvenlyAreNamed) {
  const auto read_7b = [](const std::string& sequences) {
    return read_llama_job(examples / "7b/pretrain.sh", {{"GLOBAL_BATCH", sequences}});
  };
  const LlamaJob job = read_7b("7");
  EXPECT_EQ(job.global_batch(), 4);
  EXPECT_THAT(job.notes, ElementsAre(has_all("pretrain.sh:26: $(($GLOBAL_BATCH / $MICRO_BATCH / $DP)) is 1, ",
                                             "7 / 4 is rounded", "GLOBAL_BATCH is 7", "DP is 4",
                                             "a step of this job has 4 sequences")));
  EXPECT_THAT(read_7b("8").notes, IsEmpty());
  EXPECT_THAT(message_of<ConfigError>([&] { read_7b("3"); }),
              has_all("--grad_accum_usteps 0: expected a whole number from 1",
                      "pretrain.sh:26: $(($GLOBAL_BATCH / $MICRO_BATCH / $DP)) is 0, as 3 / 4 is rounded"));
  EXPECT_THAT(message_of<ConfigError>([] {
                read_llama_job(examples / "7b/pretrain.sh", {{"TP", "eight"}});
              }),
              has_all("pretrain.sh:25: ", "TP is \"eight\"; expected a whole number"));
}

TEST_F(LlamaJobs, DefaultsAreTheScripts) {
  const LlamaJob job = read("");
  EXPECT_EQ(job.tp, 2);
  EXPECT_EQ(job.sequences, 8);
  EXPECT_EQ(job.micro_batches, 1);
  EXPECT_EQ(job.length, 4096);
  EXPECT_TRUE(job.recomputes);
  EXPECT_TRUE(job.divides_rows);
  EXPECT_FALSE(read("--use_sequence_parallel 0").divides_rows);
  EXPECT_EQ(job.strategy, "ddp");
  const LlamaJob tunes = read("--pretrained_ckpt model --batch_size 1");
  EXPECT_EQ(tunes.length, 2048);
  EXPECT_EQ(tunes.micro_batches, 64);
  EXPECT_FALSE(tunes.divides_rows);
  EXPECT_EQ(read("--num_layers 4 --hidden_size -1").layers, 4);
}

TEST_F(LlamaJobs, MistakesAreNamedWithTheirLine) {
  EXPECT_THAT(error("--train_batch_sise 1"),
              has_all("job.sh:1: --train_batch_sise is not a known flag", "train_batch_size"));
  EXPECT_THAT(error("--tensor_parallel_size 3"),
              has_all("job.sh:1: --tensor_parallel_size 3",
                      "a multiple of 3 ranks, but torchrun starts 8 on 1 host", "-N"));
  EXPECT_THAT(error("--seq_len $(cat length)"),
              has_all("--seq_len: ", "(line 1: cat length is not run)", "NAME=VALUE"));
  EXPECT_EQ(error("--tb_dir $(cat length)"), "no error");
  EXPECT_THAT(error("", "--nproc_per_node $(nproc)"),
              has_all("torchrun's --nproc_per_node: ", "(line 1: nproc is not run)"));
  EXPECT_THAT(error("", "--nproc_per_node gpu"),
              has_all("torchrun's --nproc_per_node gpu: expected a whole number"));
  EXPECT_THAT(error("--pipeline_parallel_size 2 --train_batch_size 7 --num_microbatches 2"),
              HasSubstr("--num_microbatches 2: it does not divide --train_batch_size 7"));
  EXPECT_THAT(error("--model_path missing"),
              has_all("--model_path missing: there is no config.json", "NAME=FOLDER"));
  EXPECT_THAT(error("--precision fp33"), HasSubstr("fp33"));
  write_file_atomic(folder_.path() / "other.sh", "torchrun train.py\n");
  EXPECT_THAT(message_of<ConfigError>([&] { read_llama_job(folder_.path() / "other.sh", {}); }),
              has_all("other.sh:1: torchrun starts \"train.py\"; expected run_llama_nxd_ptl.py"));
}

}  // namespace
}  // namespace stretto::compat
