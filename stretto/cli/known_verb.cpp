#include "stretto/cli/known_verb.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::cli {

void require_known_verb(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
  }
  const std::string known = fmt::format("{}", fmt::join(verbs, ", "));
  if (argc < 2) throw ConfigError("say what to do, one of {}; stretto --help tells more", known);
  const std::string word = argv[1];
  if (word.starts_with('-') || std::ranges::find(verbs, word) != verbs.end()) return;
  throw ConfigError("\"{}\" is not a verb of stretto ({}){}", word, known, did_you_mean(word, verbs));
}

}  // namespace stretto::cli
