#include "stretto/compat/hf_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/config/recipe.h"
#include "stretto/config/tasks/question_answering.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/optim_config/optimizers.h"

namespace stretto::compat {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string script_error(Script script, const std::vector<std::string>& arguments) {
  return message_of<ConfigError>([&] { translate_script(script, arguments); });
}

// The recipe for the required flags of run-ner and `more`.
Recipe recipe_with(std::vector<std::string> more) {
  more.insert(more.begin(), {"--model_name_or_path", "m", "--output_dir", "o", "--do_train", "--train_file",
                             "t", "--validation_file", "v"});
  return parse_recipe(translate_script(Script::ner, more).recipe, "run-ner");
}

std::string error_with(std::vector<std::string> more) {
  more.insert(more.begin(), {"--model_name_or_path", "m", "--output_dir", "o", "--do_train", "--train_file",
                             "t", "--validation_file", "v"});
  return script_error(Script::ner, more);
}

// The hyperparameters of a SageMaker job for question answering.
TEST(HfScript, RunQaIsTranslatedToARecipe) {
  const ScriptPlan plan = translate_script(Script::qa, {"--model_name_or_path",
                                                        "models/bert",
                                                        "--train_file",
                                                        "train.json",
                                                        "--validation_file",
                                                        "dev.json",
                                                        "--do_train",
                                                        "True",
                                                        "--do_eval",
                                                        "--fp16=True",
                                                        "--per_device_train_batch_size",
                                                        "4",
                                                        "--num_train_epochs",
                                                        "2",
                                                        "--max_seq_length",
                                                        "384",
                                                        "--max_steps",
                                                        "100",
                                                        "--pad_to_max_length",
                                                        "True",
                                                        "--doc_stride",
                                                        "128",
                                                        "--output_dir",
                                                        "out",
                                                        "--adam-beta2",
                                                        "0.98"});
  const Recipe recipe = parse_recipe(plan.recipe, "run-qa");
  EXPECT_EQ(recipe.task, "question-answering");
  EXPECT_EQ(recipe.model.path, "models/bert");
  EXPECT_EQ(recipe.training.max_steps, 100);
  EXPECT_EQ(recipe.training.epochs, 2);
  EXPECT_EQ(recipe.training.batch_size, 4);
  EXPECT_EQ(recipe.training.precision, "fp16");
  EXPECT_EQ(recipe.task_settings.as<QuestionAnsweringConfig>().version_2_with_negative, false);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().betas[1], 0.98);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().weight_decay, 0);
  EXPECT_EQ(recipe.output, "out/run");
  EXPECT_TRUE(plan.train && plan.evaluate && !plan.predict);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("--pad_to_max_length is ignored: batches are packed")));
}

TEST(HfScript, EveryScheduleAndStageParses) {
  for (const char* schedule :
       {"linear", "constant", "constant_with_warmup", "cosine", "polynomial", "inverse_sqrt"}) {
    const ScriptPlan plan = translate_script(
        Script::ner, {"--model_name_or_path", "m", "--train_file", "t.json", "--validation_file", "v.json",
                      "--output_dir", "o", "--do_train", "--lr_scheduler_type", schedule, "--eval_strategy",
                      "epoch", "--save_strategy", "no", "--label_all_tokens", "--seed", "7"});
    const Recipe recipe = parse_recipe(plan.recipe, "run-ner");
    EXPECT_TRUE(recipe.task_settings.as<TokenClassificationConfig>().label_all_tokens);
    EXPECT_EQ(recipe.task_settings.as<TokenClassificationConfig>().long_sentences, "cut");
    EXPECT_EQ(recipe.training.seed, 7);
  }
}

TEST(HfScript, WarmupStepsOfZeroLeaveTheRatio) {
  const auto recipe_of = [](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"--model_name_or_path", "m", "--output_dir", "o", "--do_train", "--train_file", "t"});
    return translate_script(Script::ner, more).recipe;
  };
  const std::string by_ratio = recipe_of({"--warmup_ratio", "0.1", "--warmup_steps", "0"});
  EXPECT_THAT(by_ratio, HasSubstr("warmup_ratio: 0.1"));
  EXPECT_EQ(by_ratio.find("num_warmup_steps"), std::string::npos);
  const std::string by_steps = recipe_of({"--warmup_ratio", "0.1", "--warmup_steps", "5"});
  EXPECT_THAT(by_steps, HasSubstr("num_warmup_steps: 5"));
  EXPECT_EQ(by_steps.find("warmup_ratio"), std::string::npos);
}

TEST(HfScript, LimitsOfSamplesAreTranslated) {
  const ScriptPlan plan =
      translate_script(Script::qa, {"--model_name_or_path", "m", "--output_dir", "o", "--do_train",
                                    "--do_eval", "--train_file", "t", "--validation_file", "v",
                                    "--max_train_samples", "7", "--max_eval_samples=5"});
  const Recipe recipe = parse_recipe(plan.recipe, "run-qa");
  EXPECT_EQ(recipe.data.max_train_samples, 7);
  EXPECT_EQ(recipe.data.max_validation_samples, 5);
  EXPECT_EQ(recipe.data.max_test_samples, std::nullopt);
  EXPECT_EQ(plan.max_eval_samples, "5");
}

// Every flag of transformers 4 and 5 is known.
TEST(HfScript, EveryTrainingArgumentIsNamed) {
  for (const char* flag : {"accelerator_config",
                           "adafactor",
                           "auto_find_batch_size",
                           "average_tokens_across_devices",
                           "batch_eval_metrics",
                           "bf16_full_eval",
                           "data_seed",
                           "dataloader_drop_last",
                           "dataloader_num_workers",
                           "dataloader_persistent_workers",
                           "dataloader_pin_memory",
                           "dataloader_prefetch_factor",
                           "ddp_backend",
                           "ddp_broadcast_buffers",
                           "ddp_bucket_cap_mb",
                           "ddp_find_unused_parameters",
                           "ddp_static_graph",
                           "ddp_timeout",
                           "debug",
                           "deepspeed",
                           "disable_tqdm",
                           "enable_jit_checkpoint",
                           "eval_accumulation_steps",
                           "eval_delay",
                           "eval_do_concat_batches",
                           "eval_on_start",
                           "eval_use_gather_object",
                           "fp16_backend",
                           "fp16_full_eval",
                           "fp16_opt_level",
                           "fsdp",
                           "fsdp_config",
                           "fsdp_min_num_params",
                           "fsdp_transformer_layer_cls_to_wrap",
                           "full_determinism",
                           "gradient_checkpointing",
                           "gradient_checkpointing_kwargs",
                           "greater_is_better",
                           "group_by_length",
                           "half_precision_backend",
                           "hub_always_push",
                           "hub_model_id",
                           "hub_private_repo",
                           "hub_revision",
                           "hub_strategy",
                           "hub_token",
                           "ignore_data_skip",
                           "include_for_metrics",
                           "include_inputs_for_metrics",
                           "include_num_input_tokens_seen",
                           "include_tokens_per_second",
                           "jit_mode_eval",
                           "label_names",
                           "length_column_name",
                           "liger_kernel_config",
                           "local_rank",
                           "log_level",
                           "log_level_replica",
                           "log_on_each_node",
                           "logging_dir",
                           "logging_first_step",
                           "logging_nan_inf_filter",
                           "mp_parameters",
                           "neftune_noise_alpha",
                           "no_cuda",
                           "optim",
                           "optim_args",
                           "optim_target_modules",
                           "parallelism_config",
                           "past_index",
                           "predict_with_generate",
                           "prediction_loss_only",
                           "push_to_hub",
                           "push_to_hub_model_id",
                           "push_to_hub_organization",
                           "push_to_hub_token",
                           "remove_unused_columns",
                           "report_to",
                           "restore_callback_states_from_checkpoint",
                           "resume_from_checkpoint",
                           "run_name",
                           "save_on_each_node",
                           "save_only_model",
                           "save_safetensors",
                           "skip_memory_metrics",
                           "tf32",
                           "token",
                           "torch_compile",
                           "torch_compile_backend",
                           "torch_compile_mode",
                           "torch_empty_cache_steps",
                           "torchdynamo",
                           "tpu_metrics_debug",
                           "tpu_num_cores",
                           "train_sampling_strategy",
                           "trust_remote_code",
                           "use_auth_token",
                           "use_cache",
                           "use_cpu",
                           "use_ipex",
                           "use_liger_kernel",
                           "use_mps_device"}) {
    EXPECT_EQ(error_with({"--" + std::string(flag) + "=None"}), "no error") << flag;
  }
}

TEST(HfScript, OptimizersAreTranslated) {
  for (const auto& [name, type] : {std::pair("adamw_torch", "AdamW"),
                                   {"adamw_torch_fused", "AdamW"},
                                   {"sgd", "SGD"},
                                   {"adagrad", "Adagrad"},
                                   {"rmsprop", "RMSprop"},
                                   {"adafactor", "Adafactor"}}) {
    const Recipe recipe = recipe_with({"--optim", name, "--adam_beta1", "0.8", "--weight_decay", "0.1"});
    EXPECT_EQ(recipe.optimizer.type, type);
    EXPECT_EQ(recipe.optimizer.value("weight_decay"), 0.1);
  }
  EXPECT_EQ(recipe_with({"--adafactor"}).optimizer.type, "Adafactor");
  EXPECT_THAT(error_with({"--optim", "adamw_bnb_8bit"}),
              has_all("--optim adamw_bnb_8bit:", "adamw_torch_fused"));
}

TEST(HfScript, SchedulesAndTheirSettingsAreTranslated) {
  const Recipe lowest =
      recipe_with({"--lr_scheduler_type", "cosine_with_min_lr", "--learning_rate", "1e-4",
                   "--lr_scheduler_kwargs", R"({"min_lr": 1e-5})", "--warmup_steps", "0.1"});
  EXPECT_EQ(lowest.scheduler.type, "CosineWithWarmup");
  EXPECT_DOUBLE_EQ(lowest.scheduler.value("min_lr_rate").get<double>(), 0.1);
  EXPECT_EQ(lowest.scheduler.value("warmup_ratio"), 0.1);
  const Recipe plateau = recipe_with({"--lr_scheduler_type", "reduce_lr_on_plateau", "--eval_strategy",
                                      "epoch", "--lr_scheduler_kwargs", R"({"patience": 2, "mode": "max"})"});
  EXPECT_EQ(plateau.scheduler.value("patience"), 2);
  EXPECT_EQ(plateau.scheduler.value("mode"), "max");
  EXPECT_THAT(error_with({"--lr_scheduler_kwargs", R"({"num_cycle": 2})"}),
              has_all("--lr_scheduler_kwargs {\"num_cycle\": 2}:", "scheduler.num_cycle"));
  EXPECT_THAT(error_with({"--lr_scheduler_kwargs", "2"}), has_all("--lr_scheduler_kwargs 2:", "JSON object"));
  EXPECT_THAT(error_with({"--lr_scheduler_type", "warmup_stable_decay"}),
              has_all("--lr_scheduler_type warmup_stable_decay:", "one of constant"));
  EXPECT_THAT(error_with({"--warmup_steps", "1.5"}), has_all("--warmup_steps 1.5:", "whole number"));
}

TEST(HfScript, IntervalsAndEpochsAreTranslated) {
  const Recipe steps = recipe_with({"--max_steps", "250", "--logging_steps", "0.1", "--eval_strategy",
                                    "steps", "--save_steps", "0.5", "--num_train_epochs", "2.5"});
  EXPECT_EQ(steps.track.log_every, Interval(25));
  EXPECT_EQ(steps.evaluate.every, Interval(25));  // equal to --logging_steps
  EXPECT_EQ(steps.checkpoint.every, Interval(125));
  EXPECT_EQ(steps.training.epochs, 2.5);
  const Recipe epochs =
      recipe_with({"--num_train_epochs", "4", "--save_steps", "0.25", "--logging_strategy", "no"});
  EXPECT_EQ(epochs.checkpoint.every, Interval("1ep"));
  EXPECT_TRUE(epochs.track.log_every.never());
  const Recipe best = recipe_with({"--save_strategy", "best", "--eval_strategy", "epoch"});
  EXPECT_EQ(best.checkpoint.every, Interval("eval"));
  EXPECT_EQ(best.checkpoint.keep_best, 1);
  EXPECT_THAT(error_with({"--save_strategy", "best"}), HasSubstr("nothing is evaluated"));
  EXPECT_THAT(error_with({"--logging_steps", "1.5"}), has_all("--logging_steps 1.5:", "whole number"));
  EXPECT_THAT(error_with({"--eval_strategy", "often"}),
              has_all("--eval_strategy often:", "no, epoch or steps"));
}

TEST(HfScript, ALanguageModelIsEvaluatedOnThePartForValidation) {
  const std::string recipe =
      translate_script(Script::clm, {"--model_type", "gpt2", "--tokenizer_name", "t", "--train_file", "t.txt",
                                     "--do_train", "--eval_strategy", "epoch", "--output_dir", "o"})
          .recipe;
  EXPECT_THAT(recipe, has_all("train: \"o/run/cache/train.txt\"",
                              "validation: \"o/run/cache/validation.txt\"", "evaluate:", "every: epoch"));
}

TEST(HfScript, ValuesHaveTheSyntaxOfScripts) {
  const Recipe recipe =
      recipe_with({"--text_column_name", "\"words\"", "--seed=7", "--max_train_samples", "None",
                   "--label_column_name=", "--fp16", "FALSE", "--no_dataloader_pin_memory", "--report_to",
                   "wandb", "tensorboard", "--bf16", "true"});
  EXPECT_EQ(recipe.data.text, "words");
  EXPECT_EQ(recipe.training.seed, 7);
  EXPECT_EQ(recipe.data.max_train_samples, std::nullopt);
  EXPECT_EQ(recipe.data.label, std::nullopt);
  EXPECT_EQ(recipe.training.precision, "bf16");
  EXPECT_EQ(recipe.track.trackers, (std::vector<std::string>{"jsonl", "tensorboard"}));
  EXPECT_EQ(recipe_with({"--report_to", "none"}).track.trackers, std::vector<std::string>{"jsonl"});
  EXPECT_EQ(recipe_with({"--fsdp", "full_shard", "auto_wrap"}).training.strategy, "fsdp");
}

TEST(HfScript, AJsonFileReplacesTheFlags) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "arguments.json";
  write_file_atomic(file,
                    R"({"model_name_or_path": "m", "output_dir": "o", "do_train": true, "do_eval": false,
    "train_file": "t.json", "num_train_epochs": 2.5, "lr_scheduler_type": "polynomial", "tf32": null,
    "lr_scheduler_kwargs": {"power": 2}, "report_to": ["tensorboard", "mlflow"]})");
  const ScriptPlan plan = translate_script(Script::ner, {file});
  const Recipe recipe = parse_recipe(plan.recipe, "run-ner");
  EXPECT_TRUE(plan.train && !plan.evaluate);
  EXPECT_EQ(recipe.training.epochs, 2.5);
  EXPECT_EQ(recipe.scheduler.value("power"), 2);
  EXPECT_EQ(recipe.track.trackers, (std::vector<std::string>{"jsonl", "tensorboard", "mlflow"}));
  EXPECT_THAT(script_error(Script::ner, {file, "--do_eval"}),
              has_all(file.string() + ":", "must be the only argument"));
  EXPECT_THAT(script_error(Script::ner, {"/no/flags.json"}),
              HasSubstr("/no/flags.json: there is no such file"));
}

TEST(HfScript, GlueTasksMayHaveAnySpelling) {
  const auto task = [](const std::string& name) {
    return translate_script(Script::glue, {"--model_name_or_path", "m", "--output_dir", "o", "--do_train",
                                           "--train_file", "t", "--task_name", name})
        .glue_task;
  };
  EXPECT_EQ(task("SST-2"), "sst2");
  EXPECT_EQ(task("sst-2"), "sst2");
  EXPECT_EQ(task("STS-B"), "stsb");
  EXPECT_EQ(task("CoLA"), "cola");
  EXPECT_EQ(task("mnli_mm"), "mnli-mm");
  EXPECT_THAT(script_error(Script::glue, {"--model_name_or_path", "m", "--output_dir", "o", "--do_eval",
                                          "--task_name", "stt2"}),
              has_all("--task_name stt2:", "did you mean \"sst2\"", "cola"));
}

TEST(HfScript, ConfigNameIsAFileOrAFolder) {
  const TempFolder folder;
  const std::string model = (folder.path() / "m").string(), other = (folder.path() / "c.json").string();
  make_folders(model);
  write_file_atomic(folder.path() / "m/config.json", "{}");
  write_file_atomic(other, "{}");
  const std::vector<std::string> flags = {"--output_dir", "o", "--do_train", "--train_file", "t.txt"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), flags.begin(), flags.end());
    return more;
  };
  const auto config_of = [&](const std::string& given) {
    const std::string recipe =
        translate_script(Script::clm, with({"--config_name", given, "--tokenizer_name", model})).recipe;
    return parse_recipe(recipe, "run-clm").model.config.value().file.string();
  };
  EXPECT_EQ(config_of(other), other);
  EXPECT_EQ(config_of(model), model + "/config.json");
  for (const Script script : {Script::clm, Script::glue}) {
    for (const std::string& same : {model, model + "/", model + "/config.json"}) {
      const std::vector<std::string> both = with({"--config_name", same, "--model_name_or_path", model});
      const Recipe recipe = parse_recipe(translate_script(script, both).recipe, "");
      EXPECT_EQ(recipe.model.path, model);
      EXPECT_FALSE(recipe.model.config.has_value());
    }
    EXPECT_THAT(script_error(script, with({"--config_name", other, "--model_name_or_path", model})),
                has_all("--config_name " + other + ": the weights of --model_name_or_path " + model,
                        "cannot have the configuration of another model; remove this"));
  }
}

// Errors of settings name the flags that set them.
TEST(HfScript, ErrorsNameTheFlag) {
  EXPECT_THAT(error_with({"--max_seq_length", "1"}),
              has_all("--max_seq_length 1: data.max_length:", "from 2 to 1000000"));
  EXPECT_THAT(error_with({"--num_train_epochs", "abc"}),
              HasSubstr("--num_train_epochs abc: training.epochs"));
  EXPECT_THAT(error_with({"--max_train_samples", "0"}),
              HasSubstr("--max_train_samples 0: data.max_train_samples"));
  EXPECT_THAT(error_with({"--doc_stride", "8"}), HasSubstr("--doc_stride 8: "));
  FlagPlaces places;
  places.add(3, "--seed 7");
  EXPECT_EQ(places.in("out/recipe.yaml:3:9: a (out/recipe.yaml:4:1), out/recipe.yaml:3", "out/recipe.yaml"),
            "--seed 7: a (out/recipe.yaml:4:1), --seed 7");
}

TEST(HfScript, UnsupportedFlagsAreRefused) {
  const std::vector<std::string> least = {"--model_name_or_path", "m", "--output_dir", "o"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), least.begin(), least.end());
    return script_error(Script::ner, more);
  };
  EXPECT_THAT(with({}), HasSubstr("there is nothing to do"));
  EXPECT_THAT(with({"--do_train"}), has_all("--train_file is required", "--do_train"));
  EXPECT_THAT(with({"--do_trian"}), HasSubstr("did you mean \"do_train\"?"));
  EXPECT_THAT(with({"--dataset_name", "conll2003"}),
              has_all("--dataset_name conll2003:", "downloads nothing", "export the data set"));
  EXPECT_THAT(with({"--seed"}), HasSubstr("--seed: its value N is missing; write --seed N"));
  EXPECT_THAT(with({"--max_steps", "--do_train"}), HasSubstr("--max_steps: its value N is missing"));
  EXPECT_THAT(with({"--train_file"}), HasSubstr("write --train_file FILE"));
  EXPECT_THAT(with({"--run_name"}), HasSubstr("write --run_name VALUE"));
  EXPECT_THAT(with({"--do_eval", "maybe"}), has_all("--do_eval:", "\"maybe\"", "true or false"));
  EXPECT_THAT(with({"--do_eval", "--max_steps", "abc"}), has_all("--max_steps abc:", "whole number"));
  EXPECT_THAT(with({"--do_eval", "--task_name", "pos"}), HasSubstr("--label_column_name pos_tags"));
  EXPECT_THAT(with({"--do_eval", "--tf32", "perhaps"}), has_all("--tf32:", "\"perhaps\"", "true or false"));
  EXPECT_THAT(with({"--do_eval", "--bf16", "--fp16"}), has_all("--fp16 True:", "--bf16", "remove one"));
  EXPECT_THAT(error_with({"--load_best_model_at_end"}), HasSubstr("nothing is evaluated"));
  EXPECT_THAT(with({"stray"}), has_all("\"stray\"", "begin with --"));
  EXPECT_THAT(script_error(Script::qa, {"--output_dir", "o", "--do_train"}),
              HasSubstr("--model_name_or_path is required"));
  const std::vector<std::string> text = {"--output_dir", "o", "--do_train", "--train_file", "t"};
  const auto clm = [&](std::vector<std::string> more) {
    more.insert(more.begin(), text.begin(), text.end());
    return script_error(Script::clm, more);
  };
  EXPECT_THAT(clm({}), has_all("--model_name_or_path", "--config_name and --tokenizer_name"));
  EXPECT_THAT(clm({"--config_name", "c.json"}), HasSubstr("--tokenizer_name is required with --config_name"));
  EXPECT_THAT(clm({"--model_type", "gpt2"}), HasSubstr("--tokenizer_name is required with --model_type"));
  EXPECT_THAT(clm({"--model_type", "lama", "--tokenizer_name", "t"}),
              has_all("--model_type lama: it is not one of gpt2, llama, ", "did you mean \"llama\"?"));
  const auto overriding = [&](const std::string& overrides, const std::string& flag,
                              const std::string& value) {
    return clm({"--config_overrides", overrides, flag, value, "--tokenizer_name", "t"});
  };
  EXPECT_THAT(overriding("n_embd=8", "--config_name", "c.json"),
              HasSubstr("--config_overrides n_embd=8: it cannot be used with --config_name"));
  EXPECT_THAT(overriding("n_embd", "--model_type", "gpt2"), HasSubstr("\"n_embd\" is not KEY=VALUE"));
  EXPECT_THAT(overriding("n_embd=8", "--model_name_or_path", "m"),
              HasSubstr("cannot be used with --model_name_or_path"));
}

}  // namespace
}  // namespace stretto::compat
