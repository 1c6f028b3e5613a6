// Reads CMake's list of layers, and rejects every #include that the list does not allow and every listed
// layer that is not included.
#include <algorithm>
#include <filesystem>
#include <map>
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
using testing::UnorderedElementsAre;

struct Layer {
  std::string name;  // its folder below the root
  std::set<std::string> uses;
  std::set<std::string> test_uses;  // further layers that its tests use
};

std::set<std::string> words(std::string_view text) {
  std::set<std::string> found;
  for (std::string_view word : split(text, ' ')) {
    if (!trim(word).empty()) found.emplace(trim(word));
  }
  return found;
}

// One layer per line, "name: used used ... | used by tests ...", in the order of declaration.
std::vector<Layer> parse_layers(std::string_view text) {
  std::vector<Layer> layers;
  for (std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    std::string_view name = line.substr(0, line.find(':'));
    std::string_view lists = line.substr(name.size() + 1);
    size_t bar = std::min(lists.find('|'), lists.size());
    std::string_view by_tests = bar < lists.size() ? lists.substr(bar + 1) : "";
    layers.push_back({std::string(name), words(lists.substr(0, bar)), words(by_tests)});
  }
  return layers;
}

// An error for each layer that uses one not declared before it.
std::vector<std::string> wrong_declarations(const std::vector<Layer>& layers) {
  std::vector<std::string> found;
  std::set<std::string> before;
  for (const Layer& layer : layers) {
    for (const std::set<std::string>* uses : {&layer.uses, &layer.test_uses}) {
      for (const std::string& used : *uses) {
        if (!before.contains(used)) {
          found.push_back(fmt::format("layer {} uses {}, which is not declared above it", layer.name, used));
        }
      }
    }
    before.insert(layer.name);
  }
  return found;
}

// The layer whose folder contains `path`, a path below the root; the innermost of nested folders. Empty:
// none.
std::string layer_of(std::string_view path, const std::vector<Layer>& layers) {
  std::string_view found;
  for (const Layer& layer : layers) {
    if (path.starts_with(layer.name + "/") && layer.name.size() > found.size()) found = layer.name;
  }
  return std::string(found);
}

bool is_source(const fs::path& path) { return path.extension() == ".h" || path.extension() == ".cpp"; }

// Whether the file is a test, or is included by tests only.
bool is_test(const fs::path& path) {
  std::string stem = path.stem().string();
  return stem.ends_with("_test") || stem.ends_with("_support") || stem.ends_with("_fixture");
}

std::vector<fs::path> sources_under(const fs::path& folder) {
  std::vector<fs::path> sources;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_source(entry.path())) sources.push_back(entry.path());
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

// The layers that a layer's sources include, and the errors of these lines.
struct Includes {
  std::set<std::string> used, used_by_tests;
  std::vector<std::string> wrong;
};

class Tree {
 public:
  Tree(fs::path root, std::vector<Layer> layers) : root_(std::move(root)), layers_(std::move(layers)) {}

  // Reports every #include below the root that the list does not allow, and every allowed layer that no
  // source needs.
  std::vector<std::string> violations() const {
    std::vector<std::string> found = wrong_declarations(layers_);
    std::map<std::string, Includes> includes;
    for (const fs::path& path : sources_under(root_)) read(path, includes, found);
    for (const Layer& layer : layers_) {
      if (!fs::exists(root_ / layer.name / "README.md")) {
        found.push_back(fmt::format("{}: has no README.md", (root_ / layer.name).string()));
      }
      Includes& of_layer = includes[layer.name];
      for (std::string& wrong : of_layer.wrong) found.push_back(std::move(wrong));
      for (const std::string& listed : layer.uses) {
        if (!of_layer.used.contains(listed)) {
          found.push_back(
              fmt::format("layer {} includes nothing of {}, which its USES lists", layer.name, listed));
        }
      }
      for (const std::string& listed : layer.test_uses) {
        if (!of_layer.used_by_tests.contains(listed)) {
          found.push_back(fmt::format("tests of layer {} include nothing of {}, which its TEST_USES lists",
                                      layer.name, listed));
        }
      }
    }
    return found;
  }

 private:
  void read(const fs::path& path, std::map<std::string, Includes>& includes,
            std::vector<std::string>& found) const {
    std::string below = fs::relative(path, root_).string();
    if (below.find('/') == std::string::npos) return;  // the umbrella header
    auto layer = std::find_if(layers_.begin(), layers_.end(),
                              [name = layer_of(below, layers_)](const Layer& l) { return l.name == name; });
    if (layer == layers_.end()) {
      found.push_back(fmt::format("{}: does not belong to a declared layer", path.string()));
      return;
    }
    std::string text = read_file(path);
    int number = 0;
    for (std::string_view line : split(text, '\n')) {
      ++number;
      if (line.find("include") == std::string_view::npos) continue;
      std::string wrong = check(std::string(line), *layer, is_test(path), includes[layer->name]);
      if (!wrong.empty())
        includes[layer->name].wrong.push_back(fmt::format("{}:{}: {}", path.string(), number, wrong));
    }
  }

  // The error of one #include line of a source of `layer`, "" if there is none.
  std::string check(const std::string& line, const Layer& layer, bool in_test, Includes& includes) const {
    static const std::regex own(R"(^\s*#\s*include\s*[<"]stretto/([^>"]*).*)");
    static const std::regex quoted(R"re(^\s*#\s*include\s*"(.*)".*)re");
    std::smatch match;
    if (std::regex_match(line, match, own)) {
      if (match[1].str().find('/') == std::string::npos) return "a layer may not include the umbrella header";
      std::string used = layer_of(match[1].str(), layers_);
      if (used == layer.name) return "";
      (in_test ? includes.used_by_tests : includes.used).insert(used);
      if (layer.uses.contains(used)) return "";
      if (!layer.test_uses.contains(used))
        return fmt::format("layer {} may not use layer {}", layer.name, used);
      return in_test ? "" : fmt::format("only tests of layer {} may use layer {}", layer.name, used);
    }
    if (std::regex_match(line, match, quoted)) {
      return fmt::format("\"{}\" is not a whole path (our own: \"stretto/...\"; others: angle brackets)",
                         match[1].str());
    }
    return "";
  }

  fs::path root_;
  std::vector<Layer> layers_;
};

TEST(Layering, SourcesIncludeWhatTheirLayerMayUseAndNothingElse) {
  std::vector<Layer> layers = parse_layers(read_file(LAYERS_FILE));
  ASSERT_FALSE(layers.empty()) << LAYERS_FILE;
  for (const std::string& violation : Tree(SOURCE_FOLDER, layers).violations()) ADD_FAILURE() << violation;
}

class SyntheticTree : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    make_folders((root_.path() / path).parent_path());
    write_file_atomic(root_.path() / path, text);
  }
  std::vector<std::string> check(std::string_view layers) {
    return Tree(root_.path(), parse_layers(layers)).violations();
  }
  void SetUp() override {
    for (const char* layer : {"low", "middle", "high"}) write(std::string(layer) + "/README.md", "about");
    write("low/thing.h", "#pragma once\n");
    write("middle/thing.h", "#include \"stretto/low/thing.h\"\n");
    write("high/thing.h", "#include \"stretto/low/thing.h\"\n#include \"stretto/middle/thing.h\"\n");
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

TEST_F(SyntheticTree, AngleBracketsAndTestsAreCheckedToo) {
  write("low/thing_test.cpp", "#include <stretto/middle/thing.h>\n");
  EXPECT_THAT(check(kLayers),
              ElementsAre(HasSubstr("low/thing_test.cpp:1: layer low may not use layer middle")));
}

TEST_F(SyntheticTree, TheUmbrellaAndRelativePathsAreRefused) {
  write("middle/a.cpp", "#include \"stretto/stretto.h\"\n#include \"../high/thing.h\"\n");
  EXPECT_THAT(check(kLayers), ElementsAre(HasSubstr("a.cpp:1: a layer may not include the umbrella header"),
                                          HasSubstr("a.cpp:2: \"../high/thing.h\" is not a whole path")));
}

TEST_F(SyntheticTree, AListedLayerThatNoSourceIncludesIsNamed) {
  write("high/thing.h", "#include \"stretto/low/thing.h\"\n");
  write("high/thing_test.cpp", "#include \"stretto/middle/thing.h\"\n");
  EXPECT_THAT(check(kLayers), ElementsAre("layer high includes nothing of middle, which its USES lists"));
  EXPECT_THAT(check("low: \nmiddle: low\nhigh: low | middle\n"), IsEmpty());
}

TEST_F(SyntheticTree, LayersThatTestsUseAreClosedToOtherSources) {
  EXPECT_THAT(
      check("low: \nmiddle: low\nhigh: low | middle\n"),
      UnorderedElementsAre(HasSubstr("high/thing.h:2: only tests of layer high may use layer middle"),
                           "tests of layer high include nothing of middle, which its TEST_USES lists"));
}

TEST_F(SyntheticTree, AFolderInsideALayerCanBeALayer) {
  write("low/inner/README.md", "about");
  write("low/inner/thing.h", "#include \"stretto/low/thing.h\"\n");
  write("high/inner.cpp", "#include \"stretto/low/inner/thing.h\"\n");
  EXPECT_THAT(check("low: \nlow/inner: low\nmiddle: low\nhigh: low middle low/inner\n"), IsEmpty());
  EXPECT_THAT(check("low: \nlow/inner: low\nmiddle: low\nhigh: low middle\n"),
              ElementsAre(HasSubstr("high/inner.cpp:1: layer high may not use layer low/inner")));
}

TEST_F(SyntheticTree, ALayerMayUseOnlyLayersDeclaredBeforeIt) {
  write("low/thing.h", "#include \"stretto/high/thing.h\"\n");
  EXPECT_THAT(check("low: high\nmiddle: low\nhigh: low middle\n"),
              ElementsAre("layer low uses high, which is not declared above it"));
}

TEST_F(SyntheticTree, UndeclaredFoldersAndMissingReadmesAreNamed) {
  write("stray/thing.h", "");
  fs::remove(root_.path() / "low/README.md");
  EXPECT_THAT(check(kLayers),
              UnorderedElementsAre(HasSubstr("stray/thing.h: does not belong to a declared layer"),
                                   HasSubstr("low: has no README.md")));
}

}  // namespace
}  // namespace stretto
