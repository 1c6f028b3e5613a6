#include <algorithm>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/own_prefix.h"
#include "stretto/programs/stretto/project_files.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

// A name that is valid as a folder, in CMake's project() and unquoted in a shell.
void require_project_name(const std::string& name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto fits = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  if (name.size() <= 64 && !name.empty() && is_letter(name[0]) && std::ranges::all_of(name, fits)) return;
  throw ConfigError(
      "\"{}\" is not a valid project name: expected a letter, followed by letters, digits, - and _, at most 64 characters; the project is created as a folder of that name in the working directory",
      name);
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

void write_project(const std::string& name) {
  require_project_name(name);
  const std::filesystem::path folder = name;
  if (std::filesystem::exists(std::filesystem::symlink_status(folder))) {
    throw ConfigError("{}: it already exists; choose another name, or remove it", folder.string());
  }
  const std::filesystem::path fresh = name + ".new";
  remove_folder(fresh);
  make_folders(fresh);
  for (const ProjectFile& file : project_files()) {
    write_file_atomic(fresh / file.name, replace_all(std::string(file.text), "@NAME@", name));
  }
  rename_folder(fresh, folder);
}

void print_next_steps(const std::string& name) {
  const std::filesystem::path prefix = cmake_prefix();
  fmt::print("wrote {}/; places to change are marked CHANGE in train.cpp\n", name);
  if (prefix.empty()) {
    fmt::print(
        "this program was moved out of its build folder or installation; PREFIX below is one of them, which CMake has to find "
        "(docs/guide/install.md)\n");
  }
  fmt::print(
      "build it   cd {} && cmake -B build -DCMAKE_PREFIX_PATH={} && cmake --build build\n"
      "train it   build/train recipe.yaml -N 2\n",
      name, prefix.empty() ? "PREFIX" : shell_word(prefix.string()));
}

}  // namespace

void add_new(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("new", "Create a C++ project that trains your own model");
  auto name = std::make_shared<std::string>();
  verb->add_option("name", *name, "The project's name, and the name of the folder that is created")
      ->required()
      ->type_name("NAME");
  verb->callback([name, &exit_code] {
    write_project(*name);
    print_next_steps(*name);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
