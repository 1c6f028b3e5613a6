#include "stretto/programs/stretto/find_checkpoints.h"

#include "stretto/base/error.h"
#include "stretto/checkpoint_format/manifest.h"

namespace stretto::cli {

using checkpoint_format::Checkpoint;

std::optional<Checkpoint> as_checkpoint(const std::filesystem::path& folder) {
  const std::filesystem::path full = std::filesystem::canonical(folder);
  for (const Checkpoint& checkpoint : checkpoint_format::list_checkpoints(full.parent_path())) {
    if (checkpoint.path == full) return Checkpoint{checkpoint.step, folder};
  }
  if (!std::filesystem::exists(full / checkpoint_format::manifest_name)) return std::nullopt;
  return Checkpoint{checkpoint_format::read_manifest(folder).step,
                    folder};  // a checkpoint that was moved or renamed
}

std::filesystem::path checkpoints_in(const std::filesystem::path& folder) {
  const std::filesystem::path inner = folder / "checkpoints";
  return std::filesystem::is_directory(inner) ? inner : folder;
}

void refuse_empty(const std::filesystem::path& folder) {
  throw DataError(
      "{} holds no checkpoints; expected the output folder of a run, its checkpoints/, or one checkpoint, step-<number>",
      folder.string());
}

std::vector<Checkpoint> find_checkpoints(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) throw ConfigError("there is no folder {}", folder.string());
  if (const auto single = as_checkpoint(folder)) return {*single};
  auto found = checkpoint_format::list_checkpoints(checkpoints_in(folder));
  if (found.empty()) refuse_empty(folder);
  return found;
}

}  // namespace stretto::cli
