#include "stretto/compat/foreign_support.h"
#include "stretto/config/topology_request.h"

namespace stretto::compat {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(Foreign, ContradictionsNameBothPlaces) {
  const ForeignConfig foreign = read_deepspeed(write("ds.json", zero2_json));
  EXPECT_THAT(refusal([&] { recipe(foreign, "training: {strategy: zero1}\n"); }),
              has_all("ds.json:32:18: zero_optimization.stage:", "training.strategy: \"zero2\"",
                      "recipe.yaml:1:22) is \"zero1\"", "remove one"));
  EXPECT_THAT(refusal([&] { recipe(foreign, "output: run\n", {"optimizer.lr=1e-4"}); }),
              has_all("ds.json:", "optimizer.params.lr:", "optimizer.lr: 3e-05",
                      "(--set optimizer.lr=1e-4) is 0.0001"));
  EXPECT_EQ(recipe(foreign, "training: {strategy: deepspeed-2, max_grad_norm: 0.50}\n").training.strategy,
            "zero2")
      << "the same, under another name";
  EXPECT_THAT(refusal([&] { recipe(foreign, "training: {strategy: zero2-fp32}\n"); }),
              has_all("ds.json:", "bf16.enabled", "recipe.yaml:1:"));
  EXPECT_THAT(refusal([&] {
                recipe(read_deepspeed(
                    write("ds.json", zero2_json, "\"warmup_max_lr\": \"auto\"", "\"warmup_max_lr\": 1e-3")));
              }),
              has_all("scheduler.params.warmup_max_lr:", "optimizer.lr: 1e-3",
                      "optimizer.params.lr sets 3e-5", "remove one"));
  const Recipe batches = recipe(foreign, "training: {global_batch_size: 100}\n");
  EXPECT_THAT(refusal([&] { resolve(topology_request(batches), equal_hosts(1, 2)); }),
              HasSubstr("training.batch_size (" + (folder_.path() / "ds.json").string() +
                        ":48:39: train_micro_batch_size_per_gpu)"));
}

TEST_F(Foreign, OptimizerStateIsOffloadedToFiles) {
  const char* deepspeed = R"({"zero_optimization": {"stage": 2,
    "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 4}}})";
  EXPECT_EQ(recipe(read_deepspeed(write("d.json", deepspeed))).training.offload_optimizer, "/nvme");
  const char* unused =
      R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none", "nvme_path": "/nvme"}}})";
  EXPECT_FALSE(recipe(read_deepspeed(write("d.json", unused))).training.offload_optimizer);
  std::string accelerate =
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
      "  offload_optimizer_device: nvme\n";
  Recipe in_output = recipe(read_accelerate(write("a.yaml", accelerate)));
  in_output.output = "runs/here";
  EXPECT_EQ(offload_folder(in_output), "runs/here") << "without a folder";
  const char* without = R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}})";
  EXPECT_EQ(recipe(read_deepspeed(write("d.json", without))).training.offload_optimizer, in_output_folder);
  accelerate += "  offload_optimizer_nvme_path: /nvme\n";
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", accelerate))).training.offload_optimizer, "/nvme");
}

TEST_F(Foreign, ParametersAreOffloadedToFiles) {
  const auto deepspeed = [&](const std::string& stage, const std::string& folder) {
    return recipe(
        read_deepspeed(write("d.json", R"({"zero_optimization": {"stage": )" + stage +
                                           R"(, "offload_param": {"device": "nvme")" + folder + "}}}")));
  };
  EXPECT_EQ(deepspeed("3", R"(, "nvme_path": "/nvme")").training.offload_parameters, "/nvme");
  EXPECT_EQ(deepspeed("3", "").training.offload_parameters, in_output_folder);
  EXPECT_THAT(refusal([&] { deepspeed("2", ""); }),
              has_all("zero_optimization.offload_param.device", "it applies to strategies fsdp and hsdp"));
  const std::string accelerate =
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  offload_param_device: nvme\n";
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", accelerate))).training.offload_parameters,
            in_output_folder);
  const std::string named = accelerate + "  offload_param_nvme_path: /nvme\n";
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", named))).training.offload_parameters, "/nvme");
}

TEST_F(Foreign, WhatIsMissingIsNamedByTheFilesKey) {
  const auto missing = [&](const ForeignConfig& foreign, Verb verb,
                           const std::vector<std::string>& overrides = {}) {
    return refusal([&] { require_enough(load_recipe("", overrides, {}, foreign), foreign, verb); });
  };
  const auto parameters = [&](const std::string& line) {
    return read_universal_trainer(write("parameters.yml", parameters_yml, line));
  };
  EXPECT_THAT(missing(parameters("    pretrained_model_dir: '~/facebook/bart-base'\n"), Verb::train),
              has_all("parameters.yml: transformers-params.pretrained_model_dir is missing:", "model.path="));
  const ForeignConfig without_data = parameters("    data_dir: '~/pytorch_universal_trainer/data'\n");
  EXPECT_THAT(missing(without_data, Verb::train),
              has_all("parameters.yml: data-params.data_dir is missing:", "training samples", "data.train="));
  EXPECT_THAT(missing(without_data, Verb::test),
              has_all("data-params.data_dir is missing:", "samples to test"));
  EXPECT_EQ(missing(without_data, Verb::train, {"data.train=a.tsv"}), "no error");
  const ForeignConfig deepspeed = read_deepspeed(write("ds.json", zero2_json));
  EXPECT_THAT(missing(deepspeed, Verb::train),
              has_all("ds.json: it has no key for the folder of the model", "model.path=", "or a recipe"));
  EXPECT_EQ(missing(deepspeed, Verb::train, {"model.path=m", "data.train=a.tsv"}), "no error");
  EXPECT_EQ(missing(deepspeed, Verb::fit), "no error");
}

TEST_F(Foreign, FilesOfOtherToolsAreRecognised) {
  EXPECT_EQ(option_for_file(write("a", parameters_yml)), "--params");
  EXPECT_EQ(option_for_file(write("a", zero2_json)), "--deepspeed");
  EXPECT_EQ(option_for_file(write("a", fsdp_yaml)), "--accelerate");
  EXPECT_EQ(option_for_file(write("a", "hps: {epochs: 1}\n")), "--hps");
  EXPECT_EQ(option_for_file(write("a", "output: run\n")), "");
  EXPECT_EQ(option_for_file(write("a", "a: [\n")), "") << "not YAML";
  EXPECT_EQ(option_for_file(folder_.path() / "none"), "");
}

TEST_F(Foreign, AFileForAnotherOptionIsRefused) {
  const auto refuses = [&](const auto& read, const std::string& text, const std::string& option) {
    EXPECT_THAT(refusal([&] { read(write("a", text)); }),
                HasSubstr(": this is a key of files for " + option));
  };
  refuses(read_accelerate, zero2_json, "--deepspeed");
  refuses(read_deepspeed, fsdp_yaml, "--accelerate");
  refuses(read_universal_trainer, hps_yaml, "--hps");
  refuses(read_hps, parameters_yml, "--params");
  EXPECT_THAT(
      refusal([&] { read_universal_trainer(write("a", "task: text-classification\noutput: run\n")); }),
      has_all("a:1:1: task: this is a key of recipes", "as the recipe"));
}

TEST_F(Foreign, ADefaultOfAFileDoesNotReplaceAKeyOfAnother) {
  ForeignConfig both = read_deepspeed(write("ds.json", R"({"bf16": {"enabled": true}})"));
  merge(both, read_universal_trainer(write("parameters.yml", parameters_yml, "use_native_fp16: True",
                                           "use_native_fp16: False")));
  EXPECT_EQ(recipe(both, "data: {train: a.tsv}\n").training.precision, "bf16");
  EXPECT_THAT(both.files, SizeIs(2));
}

TEST_F(Foreign, StateInTheMemoryOfTheHostIsThatOfCpuRanks) {
  const ForeignConfig deepspeed = read_deepspeed(write("ds.json", R"({"zero_optimization": {"stage": 3,
    "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu"}}})"));
  EXPECT_EQ(recipe(deepspeed).training.device, "cpu");
  EXPECT_THAT(deepspeed.notes,
              Contains(has_all("ds.json:2:", "offload_optimizer.device:", "compute on the CPU")));
  EXPECT_THAT(refusal([&] { recipe(deepspeed, "training: {device: cuda}\n"); }),
              has_all("ds.json:2:", "training.device: \"cpu\"", "is \"cuda\""));
  const ForeignConfig fsdp =
      read_accelerate(write("a.yaml", fsdp_yaml, "fsdp_offload_params: false", "fsdp_offload_params: true"));
  EXPECT_THAT(fsdp.notes, Contains(has_all("fsdp_config.fsdp_offload_params:", "compute on the CPU")));
  EXPECT_EQ(recipe(read_accelerate(write("a.yaml", deepspeed_yaml, "offload_param_device: none",
                                         "offload_param_device: cpu")))
                .training.device,
            "cpu");
}

}  // namespace
}  // namespace stretto::compat
