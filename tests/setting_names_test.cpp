// Messages of a library name members of options structs, which its callers know. Only the layers that read
// recipes and command lines know keys and flags, and pass these names to libraries (base/option_names.h).
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/config/recipe.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The layers that read or write recipes, command lines, or the settings of a section.
const std::set<std::string> knows_settings = {
    "settings", "optim_config", "config", "compat", "report", "trainer", "tasks", "programs",
    "strategy",  // names of strategies in recipes
    "track",     // section track
    "launch",    // options of `stretto launch`
    "weights",   // options of `stretto convert` and `stretto pull`
};

const std::set<std::string> allowed = {
    // options of other programs
    "--mpi", "--nproc-per-node", "--ntasks-per-node", "--cpus", "--governor", "--localalloc",
    // options of `stretto launch`, which starts programs without recipes too
    "--collective-timeout", "--strategy",
    // names of files and parameters
    "model.safetensors", "model.shared", "model.embed_tokens", "model.layers", "model.norm", "tokenizer.json",
    "tokenizer.model",
    // a field of a checkpoint's manifest
    "data.samples"};

std::string sections() {
  std::vector<std::string> names;
  const auto schema = recipe_schema();
  for (const auto& [name, section] : schema.at("properties").items())
    if (section.contains("properties")) names.push_back(name);
  return fmt::format("{}", fmt::join(names, "|"));
}

// The end of the token that begins at `begin`: a comment, an #include line, a literal, or one character.
size_t end_of_token(std::string_view source, size_t begin) {
  const auto behind = [&](std::string_view end, size_t from) {
    return std::min(source.find(end, from), source.size() - end.size()) + end.size();
  };
  const std::string_view rest = source.substr(begin);
  if (rest.starts_with("//") || rest.starts_with("#include")) return behind("\n", begin);
  if (rest.starts_with("/*")) return behind("*/", begin + 2);
  if (rest.starts_with("R\"")) {
    const std::string_view delimiter = rest.substr(2, rest.find('(') - 2);
    return behind(fmt::format("){}\"", delimiter), begin);
  }
  const bool separates_digits = begin > 0 && std::isalnum(static_cast<unsigned char>(source[begin - 1]));
  if (rest.front() != '"' && (rest.front() != '\'' || separates_digits)) return begin + 1;
  size_t end = begin + 1;
  while (end < source.size() && source[end] != rest.front())
    end += source[end] == '\\' ? size_t{2} : size_t{1};
  return end + 1;
}

std::vector<std::string> literals(std::string_view source) {
  std::vector<std::string> found;
  for (size_t begin = 0, end = 0; begin < source.size(); begin = end) {
    end = std::min(end_of_token(source, begin), source.size());
    const std::string_view token = source.substr(begin, end - begin);
    if (token.size() > 1 && (token.front() == '"' || token.starts_with("R\""))) found.emplace_back(token);
  }
  return found;
}

std::vector<std::string> names_of_settings(std::string_view source) {
  static const std::regex setting("(?:^|[^.\\w-])((?:" + sections() + ")\\.[a-z_{]+|--[a-z][a-z-]*)");
  std::vector<std::string> found;
  for (const std::string& literal : literals(source)) {
    for (std::sregex_iterator match(literal.begin(), literal.end(), setting), end; match != end; ++match)
      if (!allowed.contains((*match)[1])) found.push_back((*match)[1]);
  }
  return found;
}

TEST(SettingNames, AreUnknownToLibraries) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SOURCE_FOLDER)) {
    const std::filesystem::path path = entry.path().lexically_relative(SOURCE_FOLDER);
    const std::string stem = path.stem().string();
    if (path.extension() != ".h" && path.extension() != ".cpp") continue;
    if (stem.ends_with("_test") || stem.ends_with("_support") || stem.ends_with("_fixture")) continue;
    if (knows_settings.contains(path.begin()->string())) continue;
    EXPECT_THAT(names_of_settings(read_file(entry.path())), IsEmpty())
        << path.string()
        << ": name the option by options.names(\"member\"), and pass the setting's name in them";
  }
}

TEST(SettingNames, AreFoundInLiteralsOnly) {
  EXPECT_THAT(
      names_of_settings("#include \"a/model.h\"\n"
                        "// \"data.train\"\n"
                        "f('\"', \"set data.train\", 1'000, \"training.{}: --top-k\"); /* \"ema.decay\" */\n"
                        "g(\"a.data.train, metadata.x, model.safetensors\", R\"(\"ema.decay\")\");"),
      ElementsAre("data.train", "training.{", "--top-k", "ema.decay"));
}

}  // namespace
}  // namespace stretto
