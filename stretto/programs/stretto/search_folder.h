#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace stretto::cli {

// The output folder of a search: a folder per trial, numbered from 1, and search.json, which has the
// arguments of the search, the trials that have failed and, when it has ended, the table of all trials.
class SearchFolder {
 public:
  SearchFolder(std::filesystem::path folder, int64_t trials) : folder_(std::move(folder)), trials_(trials) {}

  const std::filesystem::path& path() const { return folder_; }
  int64_t trials() const { return trials_; }
  std::string name_of(int64_t trial) const;  // "trial-03"
  std::filesystem::path of(int64_t trial) const { return folder_ / name_of(trial); }

  // Throws ConfigError for a path that is no folder for a search.
  void check() const;

  // Creates the folder for the search with these arguments, by their names in search.json, or continues this
  // search. Throws ConfigError if the folder is that of a search with other arguments, IoError.
  void claim(nlohmann::json arguments);

  // Leaves the folder to a search with other arguments if no trial has begun.
  void release() const;

  // REQUIRES: the folder is claimed.
  bool has_failed(int64_t trial) const;
  void add_failure(int64_t trial, int exit_code);
  void write_table(nlohmann::json table);

 private:
  std::filesystem::path file() const { return folder_ / "search.json"; }
  void write() const;

  std::filesystem::path folder_;
  int64_t trials_;
  nlohmann::json state_;  // search.json
};

}  // namespace stretto::cli
