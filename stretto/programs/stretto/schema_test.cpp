#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/config/recipe.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

TEST(SchemaVerb, PrintsTheSchema) {
  CLI::App app;
  int exit_code = -1;
  add_schema(app, exit_code);
  testing::internal::CaptureStdout();
  app.parse("schema");
  EXPECT_EQ(nlohmann::ordered_json::parse(testing::internal::GetCapturedStdout()), recipe_schema());
  EXPECT_EQ(exit_code, 0);
}

}  // namespace
}  // namespace stretto::cli
