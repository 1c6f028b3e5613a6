#include "stretto/programs/stretto/own_prefix.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/regex.h"

namespace stretto::cli {

std::filesystem::path own_prefix() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

std::filesystem::path cmake_prefix() {
  const std::filesystem::path prefix = own_prefix();
  return std::filesystem::exists(prefix / "lib/cmake/stretto") ? prefix : std::filesystem::path();
}

void require_torch(const std::filesystem::path& prefix) {
  if (!std::filesystem::exists(prefix / "__init__.py")) return;
  const std::filesystem::path version_file = prefix.parent_path() / "torch/version.py";
  const std::string expected = STRETTO_TORCH_VERSION;
  if (!std::filesystem::exists(version_file)) {
    throw ConfigError(
        "{}: there is no Python package torch, whose libtorch stretto computes with; pip install torch=={}",
        prefix.parent_path().string(), expected);
  }
  const auto found = find_match(read_file(version_file), "__version__ *= *'([0-9.]+)");
  if (!found) {
    throw ConfigError("{}: no line __version__ = '...'; pip install torch=={}", version_file.string(),
                      expected);
  }
  const std::string& version = found->at(1);
  if (version == expected) return;
  throw ConfigError(
      "{}: this is torch {}, but this stretto was built for torch {}; pip install torch=={}, or a stretto for torch {}",
      version_file.parent_path().string(), version, expected, expected, version);
}

}  // namespace stretto::cli
