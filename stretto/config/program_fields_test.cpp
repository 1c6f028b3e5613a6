#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/config/recipe.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/settings/describe.h"

// Settings that a program declares.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct NetworkSettings {
  int64_t hidden = 32;
  std::filesystem::path shapes = "shapes.txt";

  void fields(settings::Fields& field) {
    field("hidden", hidden, "width of the hidden layers", settings::at_least(1));
    field("shapes", shapes, "a file of shapes");
  }
};

struct ProgramSettings {
  NetworkSettings model;
  double noise = 0.5;

  void fields(settings::Fields& field) {
    field("model", model, "the network");
    field("noise", noise, "of the inputs");
  }
};

TEST(ProgramFields, AreReadWrittenAndComparedLikeBundledOnes) {
  ProgramSettings settings;
  const auto fields = settings::fields_of(settings);
  const std::vector<std::string> overrides = {"noise=0.25"};
  const Recipe recipe =
      parse_recipe("model: {hidden: 8}\noptimizer: {lr: 0.1}\n", "r.yaml", overrides, fields);
  EXPECT_EQ(settings.model.hidden, 8);
  EXPECT_EQ(settings.noise, 0.25);
  EXPECT_EQ(recipe.optimizer.as<optim::AdamwOptions>().lr, 0.1);
  EXPECT_THAT(dump_recipe(recipe),
              AllOf(StartsWith("task: text-classification\nmodel:\n  hidden: 8\n  shapes: shapes.txt\n"),
                    HasSubstr("noise: 0.25\n")));
  EXPECT_EQ(computing_settings(recipe).at("model.hidden"), 8);
  EXPECT_FALSE(shared_settings(recipe).contains("model.shapes"));
  EXPECT_THAT(recipe_help(fields),
              HasSubstr("width of the hidden layers (whole number, at least 1; default 8)"));

  ProgramSettings decoded;
  decode_recipe(encode_recipe(recipe), settings::fields_of(decoded));
  EXPECT_EQ(decoded.model.hidden, 8);
  EXPECT_EQ(decoded.noise, 0.25);
}

TEST(ProgramFields, ReplaceABundledSection) {
  ProgramSettings settings;
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { parse_recipe("model: {path: x}\n", "r.yaml", {}, settings::fields_of(settings)); }),
              StartsWith("r.yaml:1:9: model.path is not a setting"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { parse_recipe("model: {hidden: 0}\n", "r.yaml", {}, settings::fields_of(settings)); }),
              HasSubstr("model.hidden: 0 is out of range"));
}

TEST(ProgramFields, CannotTakeTheNameOfABundledSetting) {
  struct Taken {
    int64_t training = 1;
    void fields(settings::Fields& field) { field("training", training, "help"); }
  } settings;
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { parse_recipe("output: o\n", "r.yaml", {}, settings::fields_of(settings)); }),
              HasSubstr("declares the setting \"training\", which is reserved by stretto"));
}

}  // namespace
}  // namespace stretto
