#include "stretto/programs/stretto/known_verb.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"

namespace stretto::cli {
namespace {

using testing::ThrowsMessage;

void require(const char* word) {
  CLI::App app;
  app.add_subcommand("train");
  app.add_subcommand("test");
  const std::array arguments = {"stretto", word};
  require_known_verb(app, word == nullptr ? 1 : 2, arguments.data());
}

TEST(KnownVerb, VerbsAndOptionsAreAccepted) {
  for (const char* word : {"train", "test", "--help", "-h"}) EXPECT_NO_THROW(require(word)) << word;
}

TEST(KnownVerb, OthersAreNamedWithTheNearestVerb) {
  EXPECT_THAT([] { require("trian"); },
              ThrowsMessage<ConfigError>(
                  "\"trian\" is not a verb of stretto (train, test); did you mean \"train\"?"));
  EXPECT_THAT([] { require("zebra"); },
              ThrowsMessage<ConfigError>("\"zebra\" is not a verb of stretto (train, test)"));
  EXPECT_THAT([] { require(""); }, ThrowsMessage<ConfigError>("\"\" is not a verb of stretto (train, test)"));
}

TEST(KnownVerb, CommandsOfAccmtAreTranslated) {
  EXPECT_THAT(
      [] { require("alaunch"); },
      ThrowsMessage<ConfigError>(
          "\"alaunch\" is a command of accmt; use stretto launch, with the setting evaluate.async=true of the program's recipe (docs/migrating.md)"));
}

TEST(KnownVerb, OptionsFollowAVerb) {
  EXPECT_THAT(
      [] { require("--foo"); },
      ThrowsMessage<ConfigError>(
          "\"--foo\" is not an option of stretto itself (--help); other options follow a verb, one of train, test"));
}

TEST(KnownVerb, AMissingVerbIsReported) {
  EXPECT_THAT(
      [] { require(nullptr); },
      ThrowsMessage<ConfigError>("a verb is missing, one of train, test; stretto --help describes them"));
}

}  // namespace
}  // namespace stretto::cli
