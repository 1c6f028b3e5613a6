#include "stretto/config/foreign/hf_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/config/recipe.h"

namespace stretto::foreign {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string script_error(Script script, const std::vector<std::string>& arguments) {
  try {
    translate_script(script, arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// The hyperparameters of a SageMaker job for question answering.
TEST(HfScript, RunQaAsARecipe) {
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
  EXPECT_EQ(recipe.training.precision, "bf16");
  EXPECT_EQ(recipe.question_answering.version_2_with_negative, false);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().betas[1], 0.98);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().weight_decay, 0);
  EXPECT_EQ(recipe.output, "out/run");
  EXPECT_TRUE(plan.train && plan.evaluate && !plan.predict);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("--pad_to_max_length has no meaning here: batches are packed")));
}

TEST(HfScript, EveryScheduleAndStageParses) {
  for (const char* schedule :
       {"linear", "constant", "constant_with_warmup", "cosine", "polynomial", "inverse_sqrt"}) {
    const ScriptPlan plan = translate_script(
        Script::ner, {"--model_name_or_path", "m", "--train_file", "t.json", "--validation_file", "v.json",
                      "--output_dir", "o", "--do_train", "--lr_scheduler_type", schedule, "--eval_strategy",
                      "epoch", "--save_strategy", "no", "--label_all_tokens", "--seed", "7"});
    const Recipe recipe = parse_recipe(plan.recipe, "run-ner");
    EXPECT_TRUE(recipe.token_classification.label_all_tokens);
    EXPECT_EQ(recipe.token_classification.long_sentences, "cut");
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

TEST(HfScript, LimitsOfSamples) {
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

TEST(HfScript, Refusals) {
  const std::vector<std::string> least = {"--model_name_or_path", "m", "--output_dir", "o"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), least.begin(), least.end());
    return script_error(Script::ner, more);
  };
  EXPECT_THAT(with({}), HasSubstr("there is nothing to do"));
  EXPECT_THAT(with({"--do_train"}), HasSubstr("--train_file is required by --do_train"));
  EXPECT_THAT(with({"--do_trian"}), HasSubstr("did you mean \"do_train\"?"));
  EXPECT_THAT(with({"--dataset_name", "conll2003"}),
              HasSubstr("stretto downloads nothing; export the data set"));
  EXPECT_THAT(with({"--seed"}), HasSubstr("--seed has no value"));
  EXPECT_THAT(with({"--do_eval", "maybe"}), HasSubstr("--do_eval: found \"maybe\""));
  EXPECT_THAT(with({"--num_train_epochs", "1.5"}), HasSubstr("use --max_steps"));
  EXPECT_THAT(with({"--do_eval", "--max_steps", "abc"}),
              HasSubstr("--max_steps abc: expected a whole number"));
  EXPECT_THAT(with({"--do_eval", "--task_name", "pos"}), HasSubstr("--label_column_name pos_tags"));
  EXPECT_THAT(with({"stray"}), HasSubstr("\"stray\" stands behind no flag"));
  EXPECT_THAT(script_error(Script::qa, {"--output_dir", "o", "--do_train"}),
              HasSubstr("--model_name_or_path is required"));
}

}  // namespace
}  // namespace stretto::foreign
