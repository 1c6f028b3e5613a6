#include "stretto/programs/stretto/known_verb.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
  EXPECT_THAT(message_of<ConfigError>([] { require("trian"); }),
              has_all("\"trian\"", "not a verb", "(train, test)", "did you mean \"train\"?"));
  EXPECT_THAT(message_of<ConfigError>([] { require("zebra"); }),
              AllOf(has_all("\"zebra\"", "not a verb", "(train, test)"), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(message_of<ConfigError>([] { require(""); }), has_all("\"\" ", "not a verb", "(train, test)"));
}

TEST(KnownVerb, CommandsOfAccmtAreTranslated) {
  EXPECT_THAT(message_of<ConfigError>([] { require("alaunch"); }),
              has_all("\"alaunch\"", "command of accmt", "stretto launch", "evaluate.async=true",
                      "docs/migrating.md"));
}

TEST(KnownVerb, OptionsFollowAVerb) {
  EXPECT_THAT(
      message_of<ConfigError>([] { require("--foo"); }),
      has_all("\"--foo\"", "not an option of stretto itself", "--help", "follow a verb", "train, test"));
}

TEST(KnownVerb, AMissingVerbIsReported) {
  EXPECT_THAT(message_of<ConfigError>([] { require(nullptr); }),
              has_all("a verb is missing", "train, test", "stretto --help"));
}

}  // namespace
}  // namespace stretto::cli
