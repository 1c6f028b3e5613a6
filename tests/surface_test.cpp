// Counts the headers that a program includes with stretto/stretto.h, which `cmake --install` copies and every
// program compiles. The fewer they are, the less a program depends on stretto's internals.
#include <filesystem>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
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
using testing::Pair;

// Lower the limit with each header that is no longer reached; raise it only for a header that programs need.
constexpr size_t most_headers = 90;

// stretto's headers that `first` reaches, including itself, each with the first header found to include it.
// Paths are below `root`.
std::map<std::string, std::string> reached(const fs::path& root, const std::string& first) {
  static const std::regex include(R"(^\s*#\s*include\s*[<"](stretto/[^>"]*).*)");
  std::map<std::string, std::string> found = {{first, ""}};
  std::vector<std::string> to_read = {first};
  for (size_t i = 0; i < to_read.size(); ++i) {
    const std::string header = to_read[i];
    const std::string text = read_file(root / header);
    for (const std::string_view line : split(text, '\n')) {
      std::smatch match;
      const std::string copy(line);
      if (!std::regex_match(copy, match, include)) continue;
      if (found.emplace(match[1], header).second) to_read.push_back(match[1]);
    }
  }
  return found;
}

TEST(Surface, TheUmbrellaHeaderReachesNoMoreHeadersThanBefore) {
  const auto headers = reached(fs::path(SOURCE_FOLDER).parent_path(), "stretto/stretto.h");
  std::cout << headers.size() << " headers are reached from stretto/stretto.h; at most " << most_headers
            << "\n";
  RecordProperty("headers", static_cast<int>(headers.size()));
  if (headers.size() <= most_headers) return;
  std::string list;
  for (const auto& [header, by] : headers) list += fmt::format("  {} <- {}\n", header, by);
  FAIL() << "stretto/stretto.h reaches " << headers.size() << " headers; expected at most " << most_headers
         << ": declare what a public header only mentions, and include it in the source instead\n"
         << list;
}

// The headers that `cmake --install` copies.
std::set<std::string> installed(const fs::path& root) {
  const std::string script = read_file(root / "cmake/InstallHeaders.cmake");
  std::smatch list;
  EXPECT_TRUE(std::regex_search(script, list, std::regex(R"(\nset\(wanted ([^)]*)\))")));
  std::set<std::string> headers;
  std::istringstream names(list[1]);
  for (std::string first; names >> first;)
    for (const auto& [header, by] : reached(root, first)) headers.insert(header);
  return headers;
}

TEST(Surface, ExamplesIncludeOnlyInstalledHeaders) {
  const fs::path root = fs::path(SOURCE_FOLDER).parent_path();
  const auto headers = installed(root);
  int examples = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "examples")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    ++examples;
    const std::string example = entry.path().lexically_relative(root).string();
    for (const auto& [header, by] : reached(root, example))
      EXPECT_TRUE(!header.starts_with("stretto/") || headers.contains(header))
          << by << " includes " << header << ", which cmake/InstallHeaders.cmake does not install";
  }
  EXPECT_GT(examples, 10);
}

// Layers whose names programs and all other layers use.
const std::set<std::string> shared_layers = {"base",   "config",   "model_config",
                                             "models", "strategy", "tensor"};

TEST(Surface, InternalsAreInTheNamespacesOfTheirLayers) {
  const fs::path root = fs::path(SOURCE_FOLDER).parent_path();
  const auto is_public = reached(root, "stretto/stretto.h");
  static const std::regex own_namespace(R"(\nnamespace (stretto::\w+|lite)[ :])");
  int internals = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "stretto")) {
    const std::string header = entry.path().lexically_relative(root).string();
    if (!header.ends_with(".h") || is_public.contains(header)) continue;
    const std::string text = read_file(entry.path());
    const std::string layer = entry.path().lexically_relative(root / "stretto").begin()->string();
    if (shared_layers.contains(layer) || text.find("\nnamespace ") == std::string::npos) continue;
    if (header == "stretto/comm/store_handle.h") continue;  // what a public declaration leaves opaque
    ++internals;
    EXPECT_TRUE(std::regex_search(text, own_namespace))
        << header << " declares its names in stretto; expected stretto::" << layer
        << ", since stretto/stretto.h does not reach it";
  }
  EXPECT_GT(internals, 300);
}

TEST(Surface, OnlyOwnHeadersAreFollowedAndOnce) {
  const TempFolder root;
  make_folders(root.path() / "stretto/a");
  write_file_atomic(root.path() / "stretto/all.h", "#include <vector>\n#include \"stretto/a/one.h\"\n");
  write_file_atomic(root.path() / "stretto/a/one.h",
                    "#  include <stretto/a/two.h>\n// #include \"stretto/a/none.h\"\n");
  write_file_atomic(root.path() / "stretto/a/two.h", "#include \"stretto/a/one.h\"\n");
  EXPECT_THAT(reached(root.path(), "stretto/all.h"),
              ElementsAre(Pair("stretto/a/one.h", "stretto/all.h"),
                          Pair("stretto/a/two.h", "stretto/a/one.h"), Pair("stretto/all.h", "")));
}

}  // namespace
}  // namespace stretto
