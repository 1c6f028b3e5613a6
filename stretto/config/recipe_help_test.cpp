#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/config/recipe.h"

// Help and JSON schema of the settings.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Recipe, HelpAndSchemaContainEverySetting) {
  const std::string help = recipe_help();
  for (const char* key : {"model.path", "data.max_length", "training.global_batch_size", "optimizer.lr",
                          "scheduler.warmup_ratio", "checkpoint.monitor", "checkpoint.every",
                          "evaluate.every", "early_stopping.patience", "track.log_every"}) {
    EXPECT_THAT(help, HasSubstr(std::string("  ") + key + "\n"));
  }
  EXPECT_THAT(help, HasSubstr("peak learning rate (number, at least 0; default 5e-05)"));
  const auto schema = recipe_schema();
  EXPECT_EQ(schema["title"], "stretto recipe");
  EXPECT_EQ(schema["properties"].size(), 21u);
  EXPECT_EQ(schema["properties"]["optimizer"]["properties"]["lr"]["default"], 5e-5);
}

TEST(RecipeHelp, IsGivenForOneSectionOrSetting) {
  EXPECT_THAT(recipe_help_on("optimizer"), AllOf(StartsWith("\noptimizer: "), HasSubstr("  optimizer.lr\n"),
                                                 ::testing::Not(HasSubstr("training."))));
  EXPECT_THAT(recipe_help_on("optimizer.lr"), StartsWith("  optimizer.lr\n      peak learning rate"));
  EXPECT_THAT(message_of<ConfigError>([] { recipe_help_on("optimiser"); }),
              HasSubstr("did you mean \"optimizer\"?"));
  EXPECT_THAT(message_of<ConfigError>([] { recipe_help_on("warmup_ratio"); }),
              HasSubstr("did you mean \"scheduler.warmup_ratio\"?"));
}

TEST(RecipeSchema, RefusesSettingsOfAnotherType) {
  const auto rules = recipe_schema().at("properties").at("optimizer").at("allOf");
  // The conditional rule under which `schema` applies to the setting.
  const auto rule_for = [](const auto& of, const char* name, const nlohmann::ordered_json& schema) {
    for (const auto& rule : of) {
      const auto& properties = rule.at("then").at("properties");
      if (properties.contains(name) && properties.at(name) == schema) return rule.at("if");
    }
    return nlohmann::ordered_json();
  };
  EXPECT_EQ(rule_for(rules, "betas", false), nlohmann::ordered_json::parse(R"({"properties": {"type": {"enum":
      ["SGD", "Adadelta", "Adagrad", "Adafactor", "Muon", "ASGD", "RMSprop", "Rprop", "LBFGS"]}}, "required": ["type"]})"));
  EXPECT_EQ(rule_for(rules, "momentum", false),
            nlohmann::ordered_json::parse(R"({"properties": {"type": {"enum":
      ["AdamW", "Adam", "Adadelta", "Adagrad", "Adamax", "Adafactor", "Lamb", "ASGD", "NAdam", "RAdam", "Rprop", "SparseAdam", "LBFGS"]}}})"))
      << "without a type it is AdamW";
  const auto scheduler = recipe_schema().at("properties").at("scheduler").at("allOf");
  const auto without_warmup = rule_for(scheduler, "num_warmup_steps", {{"type", "null"}});
  EXPECT_EQ(without_warmup.at("properties").at("type").at("enum")[0], "Constant");
}

TEST(RecipeSchema, HasTheDefaultsOfEachType) {
  const auto rules = recipe_schema().at("properties").at("optimizer").at("allOf");
  std::map<std::string, double> lr;
  for (const auto& rule : rules) {
    const auto& properties = rule.at("then").at("properties");
    if (!properties.contains("lr")) continue;
    lr[rule.at("if").at("properties").at("type").at("enum")[0]] = properties.at("lr").at("default");
  }
  EXPECT_EQ(lr.size(), 16u);
  EXPECT_EQ(lr.at("AdamW"), 5e-5);
  EXPECT_EQ(lr.at("Adadelta"), 1);
}

}  // namespace
}  // namespace stretto
