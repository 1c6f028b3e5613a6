#include "stretto/programs/stretto/search_folder.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/report/run_data.h"

namespace stretto::cli {
namespace {

// How messages name an argument of a search in search.json.
std::string argument_of(const std::string& member) {
  static const std::map<std::string, std::string> arguments = {
      {"recipe", "the recipe"},        {"settings", "the list of settings"},
      {"trials", "--trials"},          {"halve_after", "--halve-after"},
      {"seed", "--search-seed"},       {"parameters", "--param"},
      {"metric", "checkpoint.monitor"}};
  return arguments.at(member);
}

// "a.yaml", "4", "optimizer.lr=1, output=x"; "none" for an empty list and what is not set.
std::string argument_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null() || value == 0 || value.empty()) return "none";
  if (!value.is_array()) return value.dump();
  std::vector<std::string> texts;
  for (const nlohmann::json& item : value) texts.push_back(argument_text(item));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string SearchFolder::name_of(int64_t trial) const {
  const size_t digits = std::max<size_t>(2, std::to_string(trials_).size());
  return fmt::format("trial-{:0{}}", trial, digits);
}

void SearchFolder::check() const {
  std::error_code failed;
  if (std::filesystem::exists(file(), failed)) return;
  const auto refuse = [&](const char* what) {
    throw ConfigError("--output {}: it {}; expected the folder of a search, or one that does not exist yet",
                      folder_.string(), what);
  };
  if (report::is_run(folder_)) refuse("holds a run");
  if (std::filesystem::exists(folder_ / "config.json", failed)) refuse("is a model folder");
  if (std::filesystem::exists(folder_, failed) && !std::filesystem::is_directory(folder_, failed))
    refuse("is a file");
}

void SearchFolder::claim(nlohmann::json arguments) {
  if (std::filesystem::exists(file())) {
    state_ = read_json(file());
    for (const auto& [name, value] : arguments.items()) {
      if (state_["search"].contains(name) && state_["search"][name] == value) continue;
      throw ConfigError(
          "{} belongs to a search with other arguments: {} was {}, now {}; repeat them to continue it, or choose another folder with --output",
          folder_.string(), argument_of(name), argument_text(state_["search"].value(name, nlohmann::json())),
          argument_text(value));
    }
    return;
  }
  make_folders(folder_);
  state_ = {{"search", std::move(arguments)}, {"failed", nlohmann::json::object()}};
  write();
}

void SearchFolder::release() const {
  for (int64_t trial = 1; trial <= trials_; ++trial)
    if (report::is_run(of(trial))) return;
  std::filesystem::remove(file());
  std::error_code not_empty;
  std::filesystem::remove(folder_, not_empty);
}

bool SearchFolder::has_failed(int64_t trial) const { return state_["failed"].contains(name_of(trial)); }

void SearchFolder::add_failure(int64_t trial, int exit_code) {
  state_["failed"][name_of(trial)] = exit_code;
  write();
}

void SearchFolder::write_table(nlohmann::json table) {
  state_["trials"] = std::move(table);
  write();
}

void SearchFolder::write() const { write_file_atomic(file(), state_.dump(2) + "\n"); }

}  // namespace stretto::cli
