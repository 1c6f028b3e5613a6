#include "stretto/programs/arguments/parse.h"

#include <gmock/gmock.h>

#include "stretto/base/message_support.h"
#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::arguments {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Parses `stretto train WORDS`.
struct TrainCommand {
  TrainCommand() { add_recipe_arguments(*app.add_subcommand("train"), arguments); }

  std::string usage_error(std::vector<std::string> words) {
    words.insert(words.begin(), "train");
    try {
      app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
      return describe_usage_error(app, error);
    }
    return "";
  }
  std::string help(const std::string& option) {
    try {
      app.parse({option, "train"});
    } catch (const CLI::ParseError& error) {
      std::ostringstream text;
      app.exit(error, text, text);
      return text.str();
    }
    return "";
  }

  RecipeArguments arguments;
  CLI::App app{"", "stretto"};
};

TEST(Parse, AnUnknownOptionIsNamedWithTheNearestOne) {
  EXPECT_THAT(
      TrainCommand().usage_error({"r.yaml", "--max-restart=3"}),
      has_all("stretto train: --max-restart ", "did you mean \"--max-restarts\"?", "stretto train --help"));
  EXPECT_THAT(TrainCommand().usage_error({"r.yaml", "--zebra"}),
              AllOf(has_all("stretto train: --zebra is not an option", "stretto train --help"),
                    Not(HasSubstr("did you mean"))));
}

TEST(Parse, AnUnknownOptionIsReportedBeforeItsConsequences) {
  EXPECT_THAT(TrainCommand().usage_error({"--max-restart=3"}), HasSubstr("--max-restart is not an option"));
}

TEST(Parse, ArgumentsOfAVerbAreNotReportedForOtherErrors) {
  TrainCommand command;
  command.app.get_subcommand("train")->allow_extras();
  EXPECT_THAT(command.usage_error({"r.yaml", "--do_train", "-N", "0"}),
              HasSubstr("\"0\" is not a whole number"));
}

TEST(Parse, AnEmptyStrategyIsRefused) {
  EXPECT_THAT(TrainCommand().usage_error({"r.yaml", "--strategy", ""}),
              HasSubstr("--strat: expected a name"));
}

TEST(Parse, OtherUsageErrorsNameTheVerb) {
  EXPECT_THAT(TrainCommand().usage_error({}),
              has_all("stretto train: recipe is required", "stretto train --help"));
  EXPECT_THAT(TrainCommand().usage_error({"r.yaml", "-N", "0"}),
              HasSubstr("stretto train: -N, --nproc-per-node: \"0\" is not"));
  EXPECT_THAT(TrainCommand().usage_error({"r.yaml", "-N", "2", "-N", "3"}),
              HasSubstr("-N, --nproc-per-node: it is given 2 times; expected once"));
}

TEST(Parse, TooFewValuesAreCounted) {
  CLI::App app{"", "stretto"};
  std::vector<std::string> runs;
  app.add_subcommand("compare")->add_option("run", runs)->expected(-2);
  try {
    app.parse(std::vector<std::string>{"a", "compare"});
    FAIL() << "one run was accepted";
  } catch (const CLI::ParseError& error) {
    EXPECT_THAT(describe_usage_error(app, error),
                HasSubstr("stretto compare: run: 1 is given; expected at least 2"));
  }
}

TEST(Parse, AMissingValueIsNamedWithItsOption) {
  EXPECT_THAT(TrainCommand().usage_error({"r.yaml", "-N"}),
              has_all("stretto train: -N, --nproc-per-node: ", "value N is missing", "stretto train --help"));
}

TEST(Parse, AnOptionIsNotTheValueOfAnother) {
  const auto said = [](std::vector<const char*> words, bool extras) {
    TrainCommand command;
    command.app.get_subcommand("train")->allow_extras(extras);
    words.insert(words.begin(), {"stretto", "train", "r.yaml"});
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(parse(command.app, static_cast<int>(words.size()), words.data()), 2);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said({"--set", "--tp", "2"}, false),
              has_all("--set: ", "KEY=VALUE is missing", "--tp follows"));
  EXPECT_THAT(said({"--set", "--train_file", "t.txt"}, true),
              has_all("--set: ", "KEY=VALUE is missing", "--train_file follows"));
}

TEST(Parse, ArgumentsThatExcludeOneAnotherAreNamed) {
  const auto said = [](std::initializer_list<const char*> words) {
    CLI::App app("", "stretto");
    CLI::App* verb = app.add_subcommand("strats");
    CLI::Option* name = verb->add_option("name");
    CLI::Option* json = verb->add_flag("--json");
    verb->add_flag("--ddp")->excludes(name)->excludes(json);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(parse(app, static_cast<int>(words.size()), std::data(words)), 2);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said({"stretto", "strats", "zero2", "--ddp"}),
              has_all("strats: ", "name \"zero2\" and --ddp exclude one another"));
  EXPECT_THAT(said({"stretto", "strats", "--ddp", "--json"}),
              HasSubstr("--json and --ddp exclude one another"));
}

TEST(Parse, AnOptionThatHelpDoesNotListIsNamedToo) {
  EXPECT_THAT(TrainCommand().usage_error({"r.yaml", "--rdzv-id", "7", "--rdzv-backend=etcd"}),
              HasSubstr("stretto train: --rdzv-backend: \"etcd\": hosts meet"));
}

TEST(Parse, AFlagTakesNoValue) {
  const auto parsed = [](const char* word) {
    TrainCommand command;
    const char* words[] = {"stretto", "train", "r.yaml", word};
    ::testing::internal::CaptureStderr();
    const bool refused = parse(command.app, 4, words) == 2;
    const std::string error = ::testing::internal::GetCapturedStderr();
    return refused ? error : "";
  };
  for (const char* option : {"--encrypt", "--no-pin", "--oversubscribe"}) {
    EXPECT_EQ(parsed(option), "");
    for (const char* value : {"true", "yes", "no", "false", "0", ""})
      EXPECT_THAT(parsed(fmt::format("{}={}", option, value).c_str()),
                  HasSubstr(fmt::format("train: {}: it takes no value, found \"{}\";", option, value)));
  }
}

TEST(Parse, AFlagOfALaunchedProgramIsItsOwn) {
  CLI::App app("", "stretto");
  CLI::App* verb = app.add_subcommand("launch")->prefix_command();
  verb->add_flag("--encrypt");
  const char* words[] = {"stretto", "launch", "--encrypt", "program", "--encrypt=true"};
  EXPECT_EQ(parse(app, 5, words), std::nullopt);
  EXPECT_THAT(verb->remaining(), ElementsAre("program", "--encrypt=true"));
}

TEST(Parse, SettingsMayOrMayNotFollowSet) {
  TrainCommand command;
  EXPECT_EQ(
      command.usage_error({"r.yaml", "a.b=1", "--set", "c=2", "-N", "2", "d=3", "--set=e=4", "f=[1, 2]"}),
      "");
  EXPECT_THAT(command.arguments.overrides, ElementsAre("a.b=1", "c=2", "d=3", "e=4", "f=[1, 2]"));
  EXPECT_EQ(command.arguments.launch.ranks, 2);
  EXPECT_EQ(command.arguments.recipe, "r.yaml");
}

TEST(Parse, AFileOfAnotherToolReplacesTheRecipe) {
  TrainCommand command;
  EXPECT_EQ(command.usage_error({"a.b=1", "--params=p.yml", "--set", "c=2", "d=3"}), "");
  EXPECT_EQ(command.arguments.recipe, "");
  EXPECT_EQ(command.arguments.files.parameters, "p.yml");
  EXPECT_THAT(command.arguments.overrides, ElementsAre("a.b=1", "c=2", "d=3"));
  EXPECT_EQ(TrainCommand().usage_error({"--hps", "h.yaml"}), "");
  TrainCommand both;
  EXPECT_EQ(both.usage_error({"r.yaml", "--deepspeed", "ds.json"}), "");
  EXPECT_EQ(both.arguments.recipe, "r.yaml");
  EXPECT_THAT(TrainCommand().usage_error({"a.b=1"}), HasSubstr("recipe is required"));
}

TEST(Parse, HelpFitsAScreenAndHelpAllHasEverySetting) {
  const std::string help = TrainCommand().help("--help"), all = TrainCommand().help("--help-all");
  EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 50);
  EXPECT_THAT(help, AllOf(HasSubstr("--max-restarts"), ::testing::ContainsRegex("optimizer +the optimizer"),
                          HasSubstr("--help-all"), Not(HasSubstr("optimizer.lr\n"))));
  EXPECT_THAT(all,
              AllOf(HasSubstr("--max-restarts"), HasSubstr("optimizer.lr\n"), HasSubstr("track.trackers\n"),
                    HasSubstr("  --hosts HOST[:RANKS],... "), HasSubstr("  --node-rank N ")));
  EXPECT_THAT(help, AllOf(HasSubstr("SEVERAL HOSTS (--help-all describes these):\n  --nodes"),
                          ::testing::ContainsRegex(" --hosts[ \n]")));
}

}  // namespace
}  // namespace stretto::arguments
