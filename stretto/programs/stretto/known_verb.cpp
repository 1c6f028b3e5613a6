#include "stretto/programs/stretto/known_verb.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::cli {
namespace {

void require_known_option(const CLI::App& app, const std::string& word, const std::string& verbs) {
  std::vector<std::string> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_name(word)) return;
    options.push_back(option->get_name());
  }
  throw ConfigError("\"{}\" is not an option of stretto itself ({}); other options follow a verb, one of {}",
                    word, fmt::join(options, ", "), verbs);
}

// What stretto has for a command of accmt; "" for other words.
std::string for_command_of_accmt(const std::string& word) {
  constexpr std::pair<const char*, const char*> commands[] = {
      {"alaunch", "stretto launch, with the setting evaluate.async=true of the program's recipe"},
      {"async-launch", "stretto launch, with the setting evaluate.async=true of the program's recipe"},
      {"debug", "stretto launch, with the setting training.fast_dev_run=1"},
      {"adebug", "stretto launch, with the settings evaluate.async=true and training.fast_dev_run=1"},
      {"async-debug", "stretto launch, with the settings evaluate.async=true and training.fast_dev_run=1"},
      {"get", "stretto convert"},
      {"example", "stretto new"}};
  for (const auto& [command, here] : commands)
    if (word == command) return here;
  return "";
}

}  // namespace

void require_known_verb(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
  }
  const std::string known = fmt::format("{}", fmt::join(verbs, ", "));
  if (argc < 2) throw ConfigError("a verb is missing, one of {}; stretto --help describes them", known);
  const std::string word = argv[1];
  if (word.starts_with('-')) return require_known_option(app, word, known);
  if (std::ranges::find(verbs, word) != verbs.end()) return;
  if (const std::string here = for_command_of_accmt(word); !here.empty())
    throw ConfigError("\"{}\" is a command of accmt; use {} (docs/migrating.md)", word, here);
  throw ConfigError("\"{}\" is not a verb of stretto ({}){}", word, known, did_you_mean(word, verbs));
}

}  // namespace stretto::cli
