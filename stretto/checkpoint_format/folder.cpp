#include "stretto/checkpoint_format/folder.h"

#include <algorithm>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/replaced_folder.h"
#include "stretto/base/strings.h"

namespace stretto::checkpoint_format {
namespace {

constexpr std::string_view name_prefix = "step-";
constexpr std::string_view partial_suffix = ".partial";

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(name_prefix)) return std::nullopt;
  const auto step = parse_int(std::string_view(name).substr(name_prefix.size()));
  return step && *step >= 0 ? std::optional<int64_t>(*step) : std::nullopt;
}

// Whether an interrupted save or removal has left a folder of this name: "step-N" with the suffixes of such
// folders. A name with another suffix, such as "step-N.bak", is that of a user's copy.
bool is_left_over(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos || !step_of(name.substr(0, dot))) return false;
  return std::ranges::all_of(split(std::string_view(name).substr(dot + 1), '.'), [](std::string_view suffix) {
    return suffix == "partial" || suffix == "removing" || suffix == "old" || suffix.starts_with("of-rank-");
  });
}

// The step of a checkpoint whose replacement was interrupted while it was only in its old folder
// (replace_folder).
std::optional<int64_t> step_of_replaced(const std::filesystem::path& path) {
  std::filesystem::path named = path;
  named.replace_extension();
  std::error_code failed;
  if (path != replaced_path(named) || std::filesystem::exists(named, failed)) return std::nullopt;
  return step_of(named.filename());
}

std::string_view slice(const MappedFile& file, int64_t begin, int64_t length) {
  return file.text().substr(static_cast<size_t>(begin), static_cast<size_t>(length));
}

// Other failures than a missing file (permissions, loops of links) are reported when the file is opened.
void require_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error)
    throw DataError("{}: the file is missing", path.string());
}

void verify_file(const std::filesystem::path& checkpoint, const std::string& name, const Manifest& manifest,
                 const std::function<void(int64_t)>& on_read) {
  const std::filesystem::path path = checkpoint / name;
  const StoredFile& expected = manifest.files.at(name);
  require_file(path);
  const MappedFile file(path);
  if (static_cast<int64_t>(file.size()) != expected.size) {
    throw DataError("{}: it has {} bytes; the manifest says {}", path.string(), file.size(), expected.size);
  }
  if (hash64(slice(file, 0, expected.header_length)) != expected.header_checksum) {
    throw DataError("{}: the header is damaged (its checksum differs from the manifest's)", path.string());
  }
  on_read(expected.header_length);
  for (const auto& [tensor, entry] : manifest.tensors) {
    for (const StoredPiece& piece : entry.pieces) {
      if (piece.file != name) continue;
      if (hash64(slice(file, piece.begin, piece.length)) == piece.checksum) {
        on_read(piece.length);
        continue;
      }
      throw DataError("{}: tensor {} is damaged (bytes {} to {} differ from their checksum)", path.string(),
                      tensor, piece.begin, piece.begin + piece.length);
    }
  }
}

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, int64_t step) {
  return folder / fmt::format("{}{:08}", name_prefix, step);
}

std::filesystem::path partial_path(const std::filesystem::path& folder, int64_t step) {
  return checkpoint_path(folder, step).string() + std::string(partial_suffix);
}

std::vector<Checkpoint> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<Checkpoint> checkpoints;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    auto step = step_of(entry.path().filename());
    if (!step) step = step_of_replaced(entry.path());
    if (step) checkpoints.push_back({*step, entry.path()});
  }
  if (unreadable && unreadable != std::errc::no_such_file_or_directory) {
    throw IoError("cannot read the folder {}: {}", folder.string(), unreadable.message());
  }
  std::ranges::sort(checkpoints, {}, &Checkpoint::step);
  return checkpoints;
}

Manifest read_manifest(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / manifest_name;
  require_file(path);
  const MappedFile file(path);
  Manifest manifest = parse_manifest(std::string(file.text()), path.string());
  const auto step = step_of((checkpoint.has_filename() ? checkpoint : checkpoint.parent_path()).filename());
  if (step && *step != manifest.step) {
    throw DataError(
        "{}: it is the manifest of step {}, but its folder is that of step {}: rename the folder back",
        path.string(), manifest.step, *step);
  }
  require_complete(manifest, path.string());
  return manifest;
}

void verify(const std::filesystem::path& checkpoint, const std::function<void(int64_t)>& on_read) {
  const Manifest manifest = read_manifest(checkpoint);
  for (const auto& [name, file] : manifest.files) verify_file(checkpoint, name, manifest, on_read);
}

std::optional<Checkpoint> newest_good(const std::filesystem::path& folder) {
  const auto checkpoints = list_checkpoints(folder);
  for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint) {
    try {
      verify(checkpoint->path);
      return *checkpoint;
    } catch (const Error& error) {
      log::warning("the checkpoint of step {} cannot be used: {}", checkpoint->step, error.what());
    }
  }
  if (checkpoints.empty()) return std::nullopt;
  throw DataError("{}: none of the {} checkpoints can be used; remove them to start from scratch",
                  folder.string(), checkpoints.size());
}

std::vector<Checkpoint> superseded(const std::vector<Checkpoint>& checkpoints, const Retention& retention) {
  if (retention.last == 0 || std::ssize(checkpoints) <= retention.last) return {};
  std::set<int64_t> kept;
  for (const Checkpoint& checkpoint : std::span(checkpoints).last(static_cast<size_t>(retention.last))) {
    kept.insert(checkpoint.step);
  }
  std::vector<std::pair<double, int64_t>> ranked;  // the smallest is the best
  for (const Checkpoint& checkpoint : checkpoints) {
    if (retention.every_steps > 0 && checkpoint.step % retention.every_steps == 0)
      kept.insert(checkpoint.step);
    if (retention.best == 0) continue;
    try {
      const auto score = read_manifest(checkpoint.path).score;
      if (score) ranked.emplace_back(score->larger_is_better ? -score->value : score->value, checkpoint.step);
    } catch (const Error& error) {
      log::warning("{}", error.what());
    }
  }
  std::ranges::sort(ranked);
  for (int64_t place = 0; place < std::min<int64_t>(retention.best, std::ssize(ranked)); ++place) {
    kept.insert(ranked[static_cast<size_t>(place)].second);
  }
  std::vector<Checkpoint> gone;
  for (const Checkpoint& checkpoint : checkpoints) {
    if (!kept.contains(checkpoint.step)) gone.push_back(checkpoint);
  }
  return gone;
}

void remove(const Checkpoint& checkpoint) { remove_folder(checkpoint.path); }

std::vector<std::filesystem::path> list_partial(const std::filesystem::path& folder) {
  std::error_code none;
  std::vector<std::filesystem::path> left_over;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (is_left_over(entry.path().filename()) && !step_of_replaced(entry.path()))
      left_over.push_back(entry.path());
  }
  std::ranges::sort(left_over);
  return left_over;
}

void remove_partial(const std::filesystem::path& folder) {
  for (const auto& path : list_partial(folder)) remove_folder(path);
}

}  // namespace stretto::checkpoint_format
