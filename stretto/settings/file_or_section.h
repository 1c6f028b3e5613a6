#pragma once

#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

namespace stretto::settings {

// The value of a setting that names a JSON file, or that is the content of one, written as a section. Keys
// and types of the section are checked where it is used.
struct FileOrSection {
  FileOrSection() = default;
  FileOrSection(std::filesystem::path path) : file(std::move(path)) {}

  std::filesystem::path file;
  nlohmann::ordered_json section;  // an object, or null: the file is meant

  bool is_section() const { return section.is_object(); }
  bool operator==(const FileOrSection&) const = default;
};

}  // namespace stretto::settings
