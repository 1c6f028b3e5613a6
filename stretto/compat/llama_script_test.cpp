#include "stretto/compat/llama_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"
#include "stretto/compat/llama_flags.h"
#include "stretto/config/recipe.h"
#include "stretto/config/tasks/causal_lm.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/schedules.h"

namespace stretto::compat {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* config =
    R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 64, "hidden_act": "silu"})";

class LlamaScript : public ::testing::Test {
 protected:
  LlamaScript() {
    write("model/config.json", config);
    write("text.txt", "To be\n");
  }
  void write(const std::string& name, const std::string& content) const {
    make_folders((folder_.path() / name).parent_path());
    write_file_atomic(folder_.path() / name, content);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  static std::vector<std::string> words(std::string_view text) {
    const auto all = split_words(text);
    return {all.begin(), all.end()};
  }

  LlamaPlan translate(const std::vector<std::string>& more, const std::string& data = "text.txt") const {
    std::vector<std::string> flags = {"--model_path", path("model"),  "--data_dir",
                                      path(data),     "--output_dir", path("out")};
    flags.insert(flags.end(), more.begin(), more.end());
    return translate_llama_script(flags);
  }
  // The recipe for 5000 steps.
  Recipe recipe(std::vector<std::string> more, const std::string& data = "text.txt") const {
    more.insert(more.end(), {"--max_steps", "5000"});
    return parse_recipe(translate(more, data).script.recipe, "run-llama");
  }
  std::string error(std::vector<std::string> more, const std::string& data = "text.txt") const {
    if (std::ranges::find(more, "--max_steps") == more.end())
      more.insert(more.end(), {"--max_steps", "5000"});
    return message_of<ConfigError>([&] { translate(more, data); });
  }

  TempFolder folder_;
};

// The defaults of the script contradict each other; here they train.
TEST_F(LlamaScript, DefaultsAreTheScripts) {
  const Recipe defaults = recipe({});
  EXPECT_EQ(defaults.task, "causal-lm");
  EXPECT_EQ(defaults.model.config->file, path("model/config.json"));
  EXPECT_EQ(defaults.tokenizer.path, path("model"));
  EXPECT_EQ(defaults.data.train, path("text.txt"));
  EXPECT_EQ(defaults.data.max_length, 4096);
  EXPECT_EQ(defaults.task_settings.as<CausalLmConfig>().blocks, BlockKind::stream);
  EXPECT_EQ(defaults.training.max_steps, 5000);
  EXPECT_EQ(defaults.training.batch_size, 8);
  EXPECT_EQ(defaults.training.grad_accumulation_steps, 1);
  EXPECT_EQ(defaults.training.mesh.tp, 2);
  EXPECT_TRUE(defaults.training.mesh.sequence_parallel);
  EXPECT_FALSE(recipe({"--use_sequence_parallel", "0"}).training.mesh.sequence_parallel);
  EXPECT_FALSE(recipe({"--tensor_parallel_size", "1"}).training.mesh.sequence_parallel);
  EXPECT_EQ(defaults.training.strategy, "ddp");
  EXPECT_EQ(defaults.training.precision, Precision::bf16);
  EXPECT_EQ(defaults.training.activation_checkpointing, 1);
  EXPECT_EQ(defaults.training.seed, 12349);
  EXPECT_EQ(defaults.training.max_grad_norm, 1.0);
  const auto& adamw = defaults.optimizer.as<optim::AdamwOptions>();
  EXPECT_EQ(adamw.lr, 4e-4);
  EXPECT_EQ(adamw.weight_decay, 0.01);
  EXPECT_EQ(adamw.betas, (std::array<double, 2>{0.9, 0.999}));
  EXPECT_EQ(defaults.scheduler.type, "LinearWithWarmup");
  EXPECT_EQ(defaults.scheduler.value("num_warmup_steps"), 2000);
  EXPECT_TRUE(defaults.checkpoint.every.never());
  EXPECT_EQ(defaults.track.log_every, Interval(1));
  EXPECT_EQ(defaults.track.throughput_steps, 10);
  EXPECT_THAT(defaults.track.trackers, ElementsAre("jsonl", "tensorboard", "results"));
  EXPECT_EQ(defaults.output, path("out"));
}

TEST_F(LlamaScript, EachValueReachesItsSetting) {
  const Recipe changed = recipe(words(
      "--lr=1e-3 --beta1=0.8 --beta2=0.95 --weight_decay=0.1 --seed=7 --tb_dir=tb --precision=fp32 "
      "--logging_interval=5 --steps_this_run=100 --warmup_steps=9 --train_batch_size=3 --grad_accum_usteps=5"));
  const auto& adamw = changed.optimizer.as<optim::AdamwOptions>();
  EXPECT_EQ(adamw.lr, 1e-3);
  EXPECT_EQ(adamw.betas, (std::array<double, 2>{0.8, 0.95}));
  EXPECT_EQ(adamw.weight_decay, 0.1);
  EXPECT_EQ(changed.training.seed, 7);
  EXPECT_EQ(changed.training.precision, Precision::fp32);
  EXPECT_EQ(changed.training.steps_this_run, 100);
  EXPECT_EQ(changed.training.batch_size, 3);
  EXPECT_EQ(changed.training.grad_accumulation_steps, 5);
  EXPECT_EQ(changed.scheduler.value("num_warmup_steps"), 9);
  EXPECT_EQ(changed.track.logging_dir, "tb");
  EXPECT_EQ(changed.track.log_every, Interval(5));
  const LlamaPlan epochs = translate({"--num_train_epochs", "3", "--warmup_steps", "0"});
  EXPECT_EQ(parse_recipe(epochs.script.recipe, "run-llama").training.epochs, 3);
  EXPECT_EQ(parse_recipe(epochs.script.recipe, "run-llama").training.max_steps, std::nullopt);
}

// What has no meaning on this hardware is accepted, and named once.
TEST_F(LlamaScript, FlagsWithoutEffectAreNamedOnce) {
  const std::vector<std::string> names = words(
      "use_fp32_optimizer use_gpu_compatible_precision use_mix_precision use_deferred_init use_meta_device_init "
      "use_flash_attention transpose_nki_inputs qkv_linear fuse_qkv kv_replicator num_microbatches fuse_microbatches "
      "deallocate_pipeline_outputs trace_file_path save_load_xser log_rank0 hooks hooks_dump_base_directory "
      "hooks_interval target_layers master_print_model_layers dump_only_master_rank dump_only_norms "
      "enable_activation_dumps enable_grad_dumps enable_tb_logging_master_rank_activation_norms "
      "enable_tb_logging_master_rank_grad_norms");
  std::vector<std::string> flags = {"--max_steps=5000"};
  for (const std::string& name : names) flags.push_back("--" + name + "=1");
  const std::vector<std::string> notes = translate(flags).script.notes;
  EXPECT_EQ(notes.size(), names.size());
  for (const std::string& name : names)
    EXPECT_THAT(notes, Contains(HasSubstr("--" + name + " is ignored: ")));
}

// The flags of run_llama_7b_tp_ptl.sh.
TEST_F(LlamaScript, The7bJobIsTranslated) {
  const LlamaPlan plan = translate({"--tensor_parallel_size",
                                    "8",
                                    "--train_batch_size",
                                    "1",
                                    "--steps_this_run",
                                    "-1",
                                    "--max_steps",
                                    "10000",
                                    "--warmup_steps",
                                    "100",
                                    "--lr",
                                    "3.0e-4",
                                    "--grad_accum_usteps",
                                    "256",
                                    "--seq_len",
                                    "4096",
                                    "--use_sequence_parallel",
                                    "1",
                                    "--use_selective_checkpoint",
                                    "1",
                                    "--use_fp32_optimizer",
                                    "1",
                                    "--use_zero1_optimizer",
                                    "1",
                                    "--scheduler_type",
                                    "'linear'",
                                    "--use_flash_attention",
                                    "1"});
  const Recipe recipe = parse_recipe(plan.script.recipe, "run-llama");
  EXPECT_EQ(recipe.training.mesh.tp, 8);
  EXPECT_TRUE(recipe.training.mesh.sequence_parallel);
  EXPECT_EQ(recipe.training.strategy, "zero1");
  EXPECT_EQ(recipe.training.activation_checkpointing, 0);
  EXPECT_EQ(recipe.training.grad_accumulation_steps, 256);
  EXPECT_EQ(recipe.training.steps_this_run, std::nullopt);
  EXPECT_EQ(plan.script.run_folder(), path("out"));
  for (const char* flag : {"use_fp32_optimizer", "use_flash_attention", "use_selective_checkpoint"})
    EXPECT_THAT(plan.script.notes, Contains(HasSubstr(std::string("--") + flag))) << flag;
}

TEST_F(LlamaScript, TheCosineScheduleIsThatOfNemo) {
  const Recipe without_tail = recipe({"--scheduler_type", "cosine", "--warmup_steps", "99", "--min_lr",
                                      "1e-5", "--constant_steps", "0", "--lr", "1.5e-4"});
  const auto& rising = without_tail.scheduler.as<optim::CosineWithWarmupOptions>();
  EXPECT_EQ(rising.min_lr, 1e-5);
  EXPECT_EQ(rising.warmup_start, 0.01);
  EXPECT_EQ(rising.constant_steps, std::nullopt);
  const Recipe with_tail = recipe({"--scheduler_type", "cosine", "--constant_steps", "500"});
  const auto& constant = with_tail.scheduler.as<optim::CosineWithWarmupOptions>();
  EXPECT_EQ(constant.constant_steps, 500);
  EXPECT_EQ(constant.warmup_start, std::nullopt);
}

TEST_F(LlamaScript, SizesOfTheModelAreOverridden) {
  const Recipe changed = recipe({"--num_layers", "4", "--hidden_size", "64"});
  EXPECT_EQ(changed.model.type, "llama");
  EXPECT_EQ(changed.model.config->section.at("num_hidden_layers"), 4);
  EXPECT_EQ(changed.model.config->section.at("hidden_size"), 64);
  EXPECT_EQ(changed.model.config->section.at("vocab_size"), 100);
  EXPECT_EQ(changed.model.config->section.at("hidden_act"), "silu");
  EXPECT_EQ(recipe({"--num_layers", "-1", "--hidden_size", "-1"}).model.type, std::nullopt);
}

TEST_F(LlamaScript, ACorpusHasItsTokenizer) {
  write("corpus/corpus.json", "{}");
  EXPECT_EQ(recipe({}, "corpus").tokenizer.path, path("corpus/tokenizer"));
  EXPECT_EQ(recipe({"--model_name", "owner/name"}, "corpus").tokenizer.path, "owner/name");
}

TEST_F(LlamaScript, SavedBlocksAreReadByTheirIds) {
  write("blocks/state.json", "{}");
  write("blocks/dataset_info.json", R"({"features": {"input_ids": {}, "labels": {}}})");
  write("texts/state.json", "{}");
  write("texts/dataset_info.json", R"({"features": {"text": {}}})");
  EXPECT_EQ(recipe({}, "blocks").data.text, "input_ids");
  EXPECT_EQ(recipe({}, "texts").data.text, std::nullopt);
  const LlamaPlan plan =
      translate({"--max_steps", "5000", "--seq_len", "64", "--validation_dir", path("blocks")});
  ASSERT_EQ(plan.blocks.size(), 1u);
  EXPECT_EQ(plan.blocks[0].path, path("blocks"));
  EXPECT_EQ(plan.blocks[0].flag, "--validation_dir " + path("blocks"));
  EXPECT_EQ(plan.blocks[0].length, 64);
}

TEST_F(LlamaScript, CheckpointsAreSavedAndLoadedByStep) {
  const Recipe saves = recipe({"--save_checkpoint", "--checkpoint_freq", "50", "--num_kept_checkpoint", "3"});
  EXPECT_EQ(saves.checkpoint.every, Interval(50));
  EXPECT_EQ(saves.checkpoint.keep_last, 3);
  EXPECT_EQ(recipe({"--save_checkpoint", "--num_kept_checkpoint", "-1"}).checkpoint.keep_last, 0);
  EXPECT_THAT(error({"--resume_ckpt"}), has_all("--resume_ckpt True: there is no checkpoint in", "out"));
  for (const char* step : {"step-00000003", "step-00000006"})
    write("out/checkpoints/" + std::string(step) + "/manifest.json", "{}");
  EXPECT_EQ(recipe({"--resume_ckpt"}).resume, path("out/checkpoints/step-00000006"));
  const LlamaPlan third = translate({"--max_steps", "5000", "--resume_ckpt", "--load_step", "3"});
  EXPECT_TRUE(third.loads_step);
  EXPECT_EQ(parse_recipe(third.script.recipe, "r").resume, path("out/checkpoints/step-00000003"));
  EXPECT_THAT(error({"--resume_ckpt", "--load_step", "4"}),
              has_all("--load_step 4: there is no checkpoint of step 4 in", "steps 3, 6"));
  EXPECT_EQ(recipe({"--resume_ckpt", "--checkpoint_dir", path("out"), "--output_dir", path("next")}).resume,
            path("out/checkpoints/step-00000006"));
  EXPECT_THAT(error({"--load_step", "3"}), has_all("--load_step 3:", "--resume_ckpt"));
}

TEST_F(LlamaScript, WithoutAnOutputFolderThatOfCheckpointsIsTheRuns) {
  const auto output = [&](std::vector<std::string> more) {
    more.insert(more.end(),
                {"--model_path", path("model"), "--data_dir", path("text.txt"), "--max_steps", "5000"});
    return translate_llama_script(more).script.output_dir;
  };
  EXPECT_EQ(output({}), "runs/llama");
  EXPECT_EQ(output({"--checkpoint_dir", "ckpt"}), "ckpt");
  EXPECT_EQ(output({"--checkpoint_dir", "ckpt", "--output_dir", "out"}), "out");
}

TEST_F(LlamaScript, FineTuningStartsFromWeightsAndRecordsOfACategory) {
  write("weights/config.json", config);
  write("dolly.jsonl", R"({"instruction": "a", "response": "b", "category": "open_qa"})"
                       "\n");
  const LlamaPlan plan =
      translate({"--task", "open_qa", "--pretrained_ckpt", path("weights"), "--batch_size", "1",
                 "--num_train_epochs", "5", "--max_steps", "3000", "--use_zero_1", "--do_eval"},
                "dolly.jsonl");
  const Recipe recipe = parse_recipe(plan.script.recipe, "run-llama");
  EXPECT_EQ(recipe.model.path, path("weights"));
  EXPECT_EQ(recipe.data.max_length, 2048);
  EXPECT_EQ(recipe.training.batch_size, 1);
  EXPECT_EQ(recipe.training.grad_accumulation_steps, 64);
  EXPECT_EQ(recipe.training.strategy, "zero1");
  EXPECT_FALSE(recipe.training.mesh.sequence_parallel);
  EXPECT_TRUE(plan.script.evaluate);
  ASSERT_TRUE(plan.instructions);
  EXPECT_EQ(plan.instructions->category, "open_qa");
  EXPECT_EQ(recipe.data.train, plan.instructions->train);
  EXPECT_EQ(recipe.data.test, plan.instructions->test);
  EXPECT_THAT(plan.script.notes, Contains(HasSubstr("--num_train_epochs 5 has no effect")));
}

TEST_F(LlamaScript, ValidationTextIsEvaluatedWhileTrainingAndAtTheEnd) {
  const Recipe evaluated = recipe({"--validation_dir", path("text.txt"), "--do_eval"});
  EXPECT_EQ(evaluated.data.validation, path("text.txt"));
  EXPECT_EQ(evaluated.data.test, path("text.txt"));
  EXPECT_THAT(error({"--do_eval"}), has_all("--validation_dir is required by --do_eval"));
}

// Every flag is known, and each with a letter missing is refused with its name.
TEST_F(LlamaScript, EveryMisspeltFlagIsRefusedWithItsName) {
  for (const Flag& flag : llama_flags()) {
    if (flag.name != "model_path" && flag.name != "data_dir") {
      EXPECT_EQ(error({"--" + flag.name + "=None"}), "no error") << flag.name;
    }
    if (flag.name.size() < 4) continue;
    std::string misspelt = flag.name;
    misspelt.erase(misspelt.size() / 2, 1);
    if (std::ranges::find(llama_flags(), misspelt, &Flag::name) != llama_flags().end()) continue;
    EXPECT_THAT(error({"--" + misspelt, "1"}),
                has_all("--" + misspelt + " is not a known flag of this script", "did you mean", flag.name));
  }
}

TEST_F(LlamaScript, ContradictingFlagsAreRefused) {
  EXPECT_THAT(error({"--min_lr", "1e-5"}), has_all("--min_lr 1e-5:", "--scheduler_type cosine"));
  EXPECT_THAT(error({"--constant_steps", "10"}), has_all("--constant_steps 10:", "--scheduler_type cosine"));
  EXPECT_EQ(error({"--constant_steps", "0"}), "no error");
  EXPECT_THAT(error({"--scheduler_type", "cosine", "--min_lr", "1"}), has_all("--min_lr 1:", "--lr 4e-4"));
  EXPECT_THAT(error({"--scheduler_type", "cosine", "--constant_steps", "4000"}),
              has_all("--constant_steps 4000: with --warmup_steps 2000", "--max_steps 5000"));
  EXPECT_THAT(error({"--scheduler_type", "cosin"}),
              has_all("--scheduler_type cosin: expected linear or cosine", "did you mean"));
  EXPECT_THAT(error({"--steps_this_run", "6000"}), has_all("--steps_this_run 6000:", "--max_steps 5000"));
  EXPECT_THAT(error({"--max_steps", "-1"}), HasSubstr("--max_steps is required"));
  EXPECT_THAT(error({"--max_steps", "0"}), HasSubstr("--max_steps 0: expected a whole number from 1"));
  EXPECT_THAT(error({"--batch_size", "4", "--train_batch_size", "8"}),
              has_all("--train_batch_size 8: --batch_size 4 is given too"));
  EXPECT_THAT(error({"--use_zero_1", "--use_zero1_optimizer", "0"}), HasSubstr("--use_zero1_optimizer 0:"));
  EXPECT_THAT(error({"--save_checkpoint", "--num_kept_checkpoint", "0"}),
              HasSubstr("--num_kept_checkpoint 0: no checkpoint would be kept"));
  EXPECT_THAT(error({"--max_steps", "1000"}),
              has_all("--warmup_steps 2000 (the default): ", "longer than --max_steps 1000"));
}

TEST_F(LlamaScript, WhatThisVersionHasNotIsRefusedByName) {
  EXPECT_THAT(error({"--pipeline_parallel_size", "4"}),
              HasSubstr("--pipeline_parallel_size 4: layers are not"));
  EXPECT_EQ(error({"--pipeline_parallel_size", "1"}), "no error");
  EXPECT_THAT(error({"--context_parallel_size", "2"}),
              HasSubstr("--context_parallel_size 2: sequences are not"));
  EXPECT_THAT(error({"--enable_lora"}), has_all("--enable_lora True:", "LoRA"));
  EXPECT_THAT(error({"--golden_rouge_score_path", "g.json"}),
              has_all("--golden_rouge_score_path g.json:", "ROUGE"));
}

TEST_F(LlamaScript, OtherModelsAndDataAreRefused) {
  write("gpt2/config.json", R"({"model_type": "gpt2"})");
  EXPECT_THAT(error({"--model_path", path("gpt2")}), has_all("--model_path", "is \"gpt2\"; expected llama"));
  EXPECT_THAT(error({"--model_path", path("none")}), has_all("--model_path", "none", "does not exist"));
  write("wide/config.json",
        R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "num_attention_heads": 4})");
  EXPECT_THAT(error({"--pretrained_weight", path("wide")}),
              has_all("--pretrained_weight", "hidden_size is 64", "but 32 in that of --model_path"));
  EXPECT_THAT(error({"--pretrained_weight", path("wide"), "--num_layers", "2"}),
              HasSubstr("--num_layers 2:"));
  EXPECT_THAT(
      error({"--model_path", path("text.txt")}),
      has_all("--model_path", "text.txt:1:1: not valid JSON", "expected a folder with the config.json"));
  EXPECT_THAT(error({"--tb_dir", path("text.txt")}), has_all("--tb_dir", "text.txt: it is a file"));
  write("corpus/corpus.json", "{}");
  EXPECT_THAT(error({}, "corpus/corpus.json"), has_all("--data_dir", "pass its folder"));
  write("arrow/state.json", "{}");
  write("arrow/dataset_info.json", R"({"features": {"image": {}, "label": {}}})");
  EXPECT_THAT(error({}, "arrow"),
              has_all("--data_dir", "arrow", "are image, label; expected input_ids, or text"));
  EXPECT_THAT(error({"--task", "open_qa"}), has_all("--task open_qa:", "text.txt", "\"instruction\""));
  EXPECT_THAT(error({"--task", "open_qa"}, "owner/name"),
              has_all("--data_dir", "owner/name: it does not exist"));
  EXPECT_THAT(error({"--lr", "fast"}), has_all("--lr fast: optimizer.lr"));
  EXPECT_THAT(error({"--seq_len", "1"}), HasSubstr("--seq_len 1: expected a whole number from 2"));
  EXPECT_THAT(error({"--tensor_parallel_size", "0"}),
              HasSubstr("--tensor_parallel_size 0: training.mesh.tp"));
}

}  // namespace
}  // namespace stretto::compat
