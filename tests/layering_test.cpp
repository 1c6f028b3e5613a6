// Reads the list of layers that CMake wrote and rejects every #include that it does not allow.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Layer {
  std::string name;
  std::set<std::string> uses;
};

// One layer per line, "name: used used ...", in the order of declaration.
std::vector<Layer> parse_layers(std::string_view text) {
  std::vector<Layer> layers;
  for (std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    std::string_view name = line.substr(0, line.find(':'));
    Layer layer{.name = std::string(name), .uses = {}};
    for (std::string_view used : split(line.substr(name.size() + 1), ' ')) {
      if (!trim(used).empty()) layer.uses.emplace(trim(used));
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

// A message for each layer that uses one not declared before it.
std::vector<std::string> wrong_declarations(const std::vector<Layer>& layers) {
  std::vector<std::string> found;
  std::set<std::string> before;
  for (const Layer& layer : layers) {
    for (const std::string& used : layer.uses) {
      if (!before.contains(used)) {
        found.push_back(fmt::format("layer {} uses {}, which is not declared above it", layer.name, used));
      }
    }
    before.insert(layer.name);
  }
  return found;
}

// What is wrong with one #include line of a file of `layer`, or nothing.
std::string wrong_include(const std::string& line, const Layer& layer) {
  static const std::regex own(R"(^\s*#\s*include\s*[<"]stretto/(?:(\w+)/)?.*)");
  static const std::regex quoted(R"re(^\s*#\s*include\s*"(.*)".*)re");
  std::smatch match;
  if (std::regex_match(line, match, own)) {
    std::string used = match[1];
    if (used.empty()) return "a layer may not include the umbrella header";
    if (used == layer.name || layer.uses.contains(used)) return "";
    return fmt::format("layer {} may not use layer {}", layer.name, used);
  }
  if (std::regex_match(line, match, quoted)) {
    return fmt::format("\"{}\" is not a whole path (our own: \"stretto/...\"; others: angle brackets)",
                       match[1].str());
  }
  return "";
}

bool is_source(const fs::path& path) { return path.extension() == ".h" || path.extension() == ".cpp"; }

std::vector<fs::path> sources_under(const fs::path& folder) {
  std::vector<fs::path> sources;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_source(entry.path())) sources.push_back(entry.path());
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

std::vector<std::string> wrong_includes(const fs::path& folder, const Layer& layer) {
  std::vector<std::string> found;
  for (const fs::path& path : sources_under(folder)) {
    std::string text = read_file(path);
    int number = 0;
    for (std::string_view line : split(text, '\n')) {
      ++number;
      if (line.find("include") == std::string_view::npos) continue;
      std::string wrong = wrong_include(std::string(line), layer);
      if (!wrong.empty()) found.push_back(fmt::format("{}:{}: {}", path.string(), number, wrong));
    }
  }
  return found;
}

// Everything below `root`, a folder of layer folders, that the list of layers does not allow.
std::vector<std::string> violations(const fs::path& root, const std::vector<Layer>& layers) {
  std::vector<std::string> found = wrong_declarations(layers);
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!entry.is_directory() || sources_under(entry.path()).empty()) continue;
    std::string name = entry.path().filename().string();
    auto layer = std::find_if(layers.begin(), layers.end(), [&](const Layer& l) { return l.name == name; });
    if (layer == layers.end()) {
      found.push_back(fmt::format("{}: has sources but is not a declared layer", entry.path().string()));
      continue;
    }
    if (!fs::exists(entry.path() / "README.md")) {
      found.push_back(fmt::format("{}: has no README.md", entry.path().string()));
    }
    for (std::string& wrong : wrong_includes(entry.path(), *layer)) found.push_back(std::move(wrong));
  }
  return found;
}

TEST(Layering, SourcesIncludeOnlyWhatTheirLayerMayUse) {
  std::vector<Layer> layers = parse_layers(read_file(LAYERS_FILE));
  ASSERT_FALSE(layers.empty()) << LAYERS_FILE;
  for (const std::string& violation : violations(SOURCE_FOLDER, layers)) ADD_FAILURE() << violation;
}

class SyntheticTree : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    make_folders((root_.path() / path).parent_path());
    write_file_atomic(root_.path() / path, text);
  }
  std::vector<std::string> check(std::string_view layers) {
    return violations(root_.path(), parse_layers(layers));
  }
  void SetUp() override {
    for (const char* layer : {"low", "middle", "high"}) {
      write(std::string(layer) + "/README.md", "about");
      write(std::string(layer) + "/thing.h", "#pragma once\n");
    }
  }

  TempFolder root_;
};

constexpr char kLayers[] = "low: \nmiddle: low\nhigh: low middle\n";

TEST_F(SyntheticTree, AllowedIncludesPass) {
  write("high/deep/thing.cpp",
        "#include <vector>\n#include \"stretto/high/thing.h\"\n#include \"stretto/low/thing.h\"\n");
  EXPECT_THAT(check(kLayers), IsEmpty());
}

TEST_F(SyntheticTree, AnIncludeFromAboveIsNamedWithFileAndLine) {
  write("low/thing.cpp", "#include <vector>\n\n#  include \"stretto/high/thing.h\"\n");
  EXPECT_THAT(check(kLayers), ElementsAre(HasSubstr("low/thing.cpp:3: layer low may not use layer high")));
}

TEST_F(SyntheticTree, AngleBracketsAndTestsAreNoWayAround) {
  write("low/thing_test.cpp", "#include <stretto/middle/thing.h>\n");
  EXPECT_THAT(check(kLayers),
              ElementsAre(HasSubstr("low/thing_test.cpp:1: layer low may not use layer middle")));
}

TEST_F(SyntheticTree, TheUmbrellaAndRelativePathsAreRefused) {
  write("middle/a.cpp", "#include \"stretto/stretto.h\"\n#include \"../high/thing.h\"\n");
  EXPECT_THAT(check(kLayers), ElementsAre(HasSubstr("a.cpp:1: a layer may not include the umbrella header"),
                                          HasSubstr("a.cpp:2: \"../high/thing.h\" is not a whole path")));
}

TEST_F(SyntheticTree, ALayerMayUseOnlyLayersDeclaredBeforeIt) {
  EXPECT_THAT(check("low: high\nmiddle: low\nhigh: low middle\n"),
              ElementsAre("layer low uses high, which is not declared above it"));
}

TEST_F(SyntheticTree, UndeclaredFoldersAndMissingReadmesAreNamed) {
  write("stray/thing.h", "");
  fs::remove(root_.path() / "low/README.md");
  EXPECT_THAT(check(kLayers),
              testing::UnorderedElementsAre(HasSubstr("stray: has sources but is not a declared layer"),
                                            HasSubstr("low: has no README.md")));
}

}  // namespace
}  // namespace stretto
