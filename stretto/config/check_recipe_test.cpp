#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/config/recipe_fixture.h"

namespace stretto {
namespace {

// Writes a recipe whose files all exist, with `overrides` applied.
class CheckRecipe : public ::testing::Test {
 protected:
  void check(std::vector<std::string> overrides, Verb verb = Verb::train) {
    for (const char* file : {"train.tsv", "dev.tsv", "test.tsv"})
      write_file_atomic(folder_.path() / file, "");
    const std::string path = folder_.path();
    for (const char* model : {"start", "run/model"}) {
      make_folders(folder_.path() / model);
      write_file_atomic(folder_.path() / model / "config.json", "");
    }
    const std::vector<std::string> files = {"output=" + path + "/run", "model.path=" + path + "/start",
                                            "data.train=" + path + "/train.tsv",
                                            "data.validation=" + path + "/dev.tsv"};
    overrides.insert(overrides.begin(), files.begin(), files.end());
    check_recipe(recipe_of("task: text-classification\n", overrides), verb);
  }
  // `named`: what the message names.
  void refuses(const std::vector<std::string>& overrides, const auto&... named) {
    refuses_to(Verb::train, overrides, named...);
  }
  void refuses_to(Verb verb, const std::vector<std::string>& overrides, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { check(overrides, verb); }), has_all(named...));
  }

  TempFolder folder_;
};

TEST_F(CheckRecipe, AGoodRecipePasses) {
  EXPECT_NO_THROW(check({}));
  EXPECT_NO_THROW(check({"data.test=" + (folder_.path() / "test.tsv").string()}, Verb::test));
  EXPECT_NO_THROW(check({"data.validation=null", "evaluate.every=never"}));
}

TEST_F(CheckRecipe, AVerbNeedsItsOwnSettingsOnly) {
  refuses({"data.train=null"}, "data.train is required", "by stretto train", "--set data.train=");
  refuses_to(Verb::test, {}, "data.test is required by stretto test");
  EXPECT_NO_THROW(
      check({"data.train=null", "data.test=" + (folder_.path() / "test.tsv").string()}, Verb::test));
  refuses({"data.validation=null"}, "evaluate.every: there are no samples to evaluate",
          "data.validation or data.validation_split", "evaluate.every: never");
}

TEST_F(CheckRecipe, AUsersProgramLoadsModelAndDataItself) {
  EXPECT_NO_THROW(check({"model.path=null", "data.train=null", "data.validation=/no/such.tsv"}, Verb::fit));
  refuses_to(Verb::fit, {"model.path=null", "checkpoint.every=sometimes"}, "checkpoint.every");
}

TEST_F(CheckRecipe, AModelThatTheRunReplacesIsRefused) {
  const std::string run = folder_.path().string() + "/run";
  refuses({"model.path=" + run + "/../run/model"},
          "run/model is in the output folder, " + run + ", whose models");
  refuses({"tokenizer.path=" + run + "/model"}, "tokenizer.path: " + run + "/model is in the output folder");
  EXPECT_NO_THROW(check({"output=" + run + "/model-of"}));
  EXPECT_NO_THROW(check({"output=" + folder_.path().string() + "/other", "model.path=" + run + "/model"}));
}

TEST_F(CheckRecipe, AnOptimizerThatNeedsWholeGradientsIsCheckedBeforeDataAreRead) {
  refuses({"optimizer.type=LBFGS"},
          "training.max_grad_norm: LBFGS compares gradients with changes of the loss");
  refuses({"optimizer.type=LBFGS", "training.max_grad_norm=0", "training.max_grad_value=1"},
          "training.max_grad_value: LBFGS compares");
  refuses({"optimizer.type=LBFGS", "training.max_grad_norm=0", "training.precision=fp16"},
          "training.precision: LBFGS evaluates a batch several times");
  EXPECT_NO_THROW(check({"optimizer.type=LBFGS", "training.max_grad_norm=0"}));
  EXPECT_NO_THROW(check({"optimizer.type=LBFGS"}, Verb::fit)) << "its Module may make another optimizer";
}

TEST_F(CheckRecipe, FilesMustExist) {
  refuses({"data.train=/no/such.tsv"},
          "--set data.train=/no/such.tsv: data.train: /no/such.tsv does not exist");
  refuses({"model.path=bert-base-uncased"}, "model.path: bert-base-uncased does not exist");
  refuses({"model.path=google/bert_uncased"}, "model.path: google/bert_uncased does not exist",
          "`stretto pull google/bert_uncased`");
  refuses({"model.path=" + folder_.path().string()}, "--set model.path=", "holds no config.json");
  refuses({"data.test=/no/such.tsv"}, "data.test: /no/such.tsv does not exist");
  refuses({"data.train=" + folder_.path().string()}, "is a folder; expected a file");
  refuses({"data.validation=/dev/zero"}, "data.validation: /dev/zero is a pipe or a device");
  refuses({"model.path=null", "model.config=" + folder_.path().string()}, "is a folder; expected a file");
  refuses({"output=" + (folder_.path() / "train.tsv").string()}, "train.tsv is a file; expected a folder");
  refuses({"output=" + (folder_.path() / "train.tsv/runs/a").string()},
          "output: " + (folder_.path() / "train.tsv").string() + " is a file; expected a folder");
  refuses_to(Verb::test, {"output=/no/such/run", "data.test=" + (folder_.path() / "test.tsv").string()},
             "output: there is no trained model in /no/such/run/model");
}

TEST_F(CheckRecipe, OneModelIsNeeded) {
  const std::string config = "model.config=" + (folder_.path() / "train.tsv").string();
  refuses({"model.path=null"}, "model.path is required (or model.config, for random weights)");
  refuses({config}, "remove this or model.path");
  refuses({"model.path=null", config}, "tokenizer.path is required", "model.path is not set",
          "model_type sequence-tagger");
  EXPECT_NO_THROW(check({"model.path=null", config, "tokenizer.path=" + folder_.path().string()}));
}

TEST_F(CheckRecipe, ATypeOfModelNeedsItsSizes) {
  const std::string config = (folder_.path() / "config.json").string();
  write_file_atomic(config, R"({"model_type": "gpt2"})");
  const std::vector<std::string> causal = {"task=causal-lm", "model.path=null",
                                           "tokenizer.path=" + folder_.path().string()};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), causal.begin(), causal.end());
    return more;
  };
  EXPECT_NO_THROW(check(with({"model.type=llama", "model.config.hidden_size=64"})));
  EXPECT_NO_THROW(check(with({"model.type=gpt2", "model.config=" + config})));
  refuses(with({"model.type=llama", "model.config=" + config}), "config.json: model_type: ", "\"gpt2\"",
          "model.type is llama");
  refuses(with({"model.type=llama"}),
          "--set model.type=llama: model.type: ", "sizes of the model are missing");
  refuses(with({"model.type=lama"}), "did you mean \"llama\"?");
  refuses(with({"model.type=mamba"}), "--set model.type=mamba: model.type: \"mamba\"",
          "gpt2, llama, mistral, qwen2, qwen3");
  refuses({"task=token-classification", "model.type=tagger"}, "\"tagger\" is not one of sequence-tagger");
  refuses({"model.type=tagger"}, "\"tagger\" is not one of sequence-tagger, gpt2, llama, mistral");
  refuses(with({"model.type=llama", "model.config.hiden_size=64"}),
          "--set model.config.hiden_size=64: model.config.hiden_size: ", "type llama", "no such key",
          "did you mean \"hidden_size\"?");
  refuses({"task=causal-lm", "model.type=llama", "model.config.hidden_size=64"}, "remove this or model.path");
  refuses({"task=causal-lm", "model.type=llama"}, "model.path: ", "llama", "random weights", "remove this");
}

TEST_F(CheckRecipe, ContradictionsAreRefused) {
  refuses({"scheduler.num_warmup_steps=5", "scheduler.warmup_ratio=0.1"},
          "--set scheduler.warmup_ratio=0.1: scheduler.warmup_ratio: ", "set twice",
          "scheduler.num_warmup_steps (--set scheduler.num_warmup_steps=5)");
  refuses({"scheduler.num_warmup_steps=5", "training.max_steps=4"}, "a warm-up of 5 steps is longer than");
  refuses({"optimizer.type=SGD", "optimizer.nesterov=true"}, "needs a momentum above 0 and dampening 0");
  refuses({"evaluate.every=never", "checkpoint.monitor=loss"}, "checkpoint.monitor: ", "without evaluations",
          "evaluate.every (--set");
}

}  // namespace
}  // namespace stretto
