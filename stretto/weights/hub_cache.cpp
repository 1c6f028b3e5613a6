#include "stretto/weights/hub_cache.h"

#include <algorithm>
#include <cstdlib>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"

namespace stretto::hub {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

bool is_name_part(std::string_view part) {
  return !part.empty() &&
         std::ranges::all_of(part,
                             [](char c) {
                               return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
                                      c == '_' || c == '.';
                             }) &&
         part.front() != '.' && part.front() != '-';
}

}  // namespace

std::filesystem::path cache_folder() {
  if (const auto folder = variable("HF_HUB_CACHE")) return expand_home(*folder);
  if (const auto folder = variable("HF_HOME")) return expand_home(*folder) / "hub";
  if (const auto folder = variable("XDG_CACHE_HOME"))
    return std::filesystem::path(*folder) / "huggingface" / "hub";
  return expand_home("~/.cache/huggingface/hub");
}

bool is_model_name(const std::string& name) {
  const auto parts = split(name, '/');
  return name.size() <= 96 && parts.size() <= 2 && std::ranges::all_of(parts, is_name_part) &&
         name.find("..") == std::string::npos && name.find("--") == std::string::npos;
}

std::filesystem::path model_folder(const std::string& name) {
  std::string folder = "models--" + name;
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  return cache_folder() / folder;
}

std::optional<std::filesystem::path> find_snapshot(const std::string& name, const std::string& revision) {
  const std::filesystem::path folder = model_folder(name);
  std::error_code failed;
  std::string commit = revision;
  if (std::filesystem::is_regular_file(folder / "refs" / revision, failed))
    commit = trim(read_file(folder / "refs" / revision));
  if (!is_hex(commit, 40) || !std::filesystem::is_directory(folder / "snapshots" / commit, failed))
    return std::nullopt;
  return folder / "snapshots" / commit;
}

std::vector<std::string> cached_models() {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(cache_folder(), failed)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("models--")) continue;
    name = name.substr(8);
    if (const size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
    names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::filesystem::path resolve_model(const std::filesystem::path& path) {
  std::error_code failed;
  if (std::filesystem::exists(path, failed) || failed || !is_model_name(path.string())) return path;
  return find_snapshot(path.string()).value_or(path);
}

std::string pull_hint(const std::filesystem::path& path) {
  const std::string name = path.string();
  const bool may_be_name = path.is_relative() && !name.empty() && name[0] != '.' && !path.has_extension() &&
                           std::ranges::count(name, '/') <= 1 && name.back() != '/';
  if (!may_be_name) return "";
  return fmt::format("{}; if it is a model of Hugging Face's hub, fetch it with `stretto pull {}`",
                     did_you_mean(name, cached_models()), name);
}

}  // namespace stretto::hub
