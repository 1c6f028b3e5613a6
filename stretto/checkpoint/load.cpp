#include "stretto/checkpoint/load.h"

#include <algorithm>
#include <functional>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/region_copy.h"
#include "stretto/tensor/safetensors.h"

namespace stretto::checkpoint {
namespace {

using checkpoint_format::Manifest;
using checkpoint_format::StoredEntry;
using checkpoint_format::StoredPiece;

void require_same_tensor(const Entry& entry, const Manifest& manifest, const OptionNames& names) {
  const auto stored = manifest.tensors.find(entry.name);
  if (stored == manifest.tensors.end()) {
    std::vector<std::string> stored_names;
    for (const auto& [name, unused] : manifest.tensors) stored_names.push_back(name);
    throw DataError("it has no tensor {}{}: it is a checkpoint of another model or optimizer", entry.name,
                    did_you_mean(entry.name, stored_names));
  }
  if (stored->second.shape != entry.shape) {
    throw DataError("tensor {} is [{}] there and [{}] here: it is a checkpoint of another model", entry.name,
                    fmt::join(stored->second.shape, ", "), fmt::join(entry.shape, ", "));
  }
  if (stored->second.dtype != safetensors_dtype(entry.dtype)) {
    throw DataError("tensor {} is {} there and {} here: set {} as it was", entry.name, stored->second.dtype,
                    safetensors_dtype(entry.dtype), names("precision"));
  }
}

// A byte per tensor of the checkpoint: whether this rank's table has it.
std::string known_tensors(const State& state, const Manifest& manifest) {
  std::set<std::string> names;
  for (const Entry& entry : state.tensors) names.insert(entry.name);
  std::string known;
  for (const auto& [name, unused] : manifest.tensors) known += names.contains(name) ? '\1' : '\0';
  return known;
}

// The tables of all ranks together have the tensors that the checkpoint has, and no others.
void require_same_tensors(Group& group, const State& state, const Manifest& manifest,
                          const OptionNames& names) {
  std::string mismatch;
  try {
    for (const Entry& entry : state.tensors) require_same_tensor(entry, manifest, names);
  } catch (const DataError& error) {
    mismatch = error.what();
  }
  for (const std::string& theirs : group.all_gather_bytes(mismatch))
    if (!theirs.empty()) throw DataError("{}", theirs);
  std::string known(manifest.tensors.size(), 0);
  for (const std::string& theirs : group.all_gather_bytes(known_tensors(state, manifest)))
    std::ranges::transform(known, theirs, known.begin(), std::bit_or<char>());
  size_t tensor = 0;
  for (const auto& [name, unused] : manifest.tensors) {
    if (known[tensor++] == 0) {
      throw DataError(
          "it has a tensor {} that this run has not: it is a checkpoint of another model or optimizer", name);
    }
  }
}

// Maps each file once and returns pieces whose checksum is correct.
class Files {
 public:
  explicit Files(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::byte* bytes(const std::string& tensor, const StoredPiece& piece) {
    auto found = files_.find(piece.file);
    if (found == files_.end()) found = files_.emplace(piece.file, MappedFile(folder_ / piece.file)).first;
    const MappedFile& file = found->second;
    if (piece.begin + piece.length > static_cast<int64_t>(file.size())) {
      throw DataError("{}: it is truncated before the end of tensor {}", (folder_ / piece.file).string(),
                      tensor);
    }
    const std::string_view bytes =
        file.text().substr(static_cast<size_t>(piece.begin), static_cast<size_t>(piece.length));
    if (hash64(bytes) != piece.checksum) {
      throw DataError("{}: tensor {} is damaged (its checksum differs)", (folder_ / piece.file).string(),
                      tensor);
    }
    return file.data() + piece.begin;
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, MappedFile> files_;
};

// False only if no element is in both.
bool overlaps(const StoredPiece& stored, const Region& wanted) {
  const Region& there = stored.region;
  if (there.offset == wanted.offset && there.extent == wanted.extent)
    return std::max(there.flat_begin, wanted.flat_begin) < std::min(there.flat_end, wanted.flat_end);
  for (size_t axis = 0; axis < wanted.extent.size(); ++axis) {
    if (stored.region.offset[axis] >= wanted.offset[axis] + wanted.extent[axis] ||
        wanted.offset[axis] >= stored.region.offset[axis] + stored.region.extent[axis]) {
      return false;
    }
  }
  return stored.length > 0;
}

void load_piece(const std::string& tensor, const StoredEntry& stored, Piece& piece, Files& files) {
  const Region& wanted = piece.region;
  const bool direct = piece.data.is_cpu() && piece.data.is_contiguous();
  const Tensor target =
      direct ? piece.data : at::empty({wanted.elements()}, piece.data.options().device(at::kCPU));
  int64_t copied = 0;
  for (const StoredPiece& part : stored.pieces) {
    if (!overlaps(part, wanted)) continue;
    copied += checkpoint_format::copy_common(part.region, files.bytes(tensor, part), wanted,
                                             static_cast<std::byte*>(target.mutable_data_ptr()),
                                             target.element_size());
  }
  if (copied != wanted.elements()) {
    throw DataError("tensor {}: the checkpoint's pieces cover {} of the {} elements needed", tensor, copied,
                    wanted.elements());
  }
  if (!direct) piece.data.copy_(target.view_as(piece.data));
}

}  // namespace

checkpoint_format::Manifest load(Group& group, const std::filesystem::path& checkpoint, State& state,
                                 const OptionNames& names) {
  at::NoGradGuard no_grad;
  Manifest manifest = checkpoint_format::read_manifest(checkpoint);
  try {
    require_same_tensors(group, state, manifest, names);
  } catch (const DataError& error) {
    throw DataError("{}: {}", checkpoint.string(), error.what());
  }
  Files files(checkpoint);
  ProgressBar bar("loading " + checkpoint.string(), std::ssize(state.tensors), "tensors");
  for (Entry& entry : state.tensors) {
    bar.add();
    for (Piece& piece : entry.pieces) load_piece(entry.name, manifest.tensors.at(entry.name), piece, files);
  }
  for (const auto& [name, value] : manifest.scalars.items()) state.scalars[name] = value;
  return manifest;
}

std::vector<const StoredPiece*> pieces_of(const Entry& entry, const StoredEntry& stored) {
  std::vector<const StoredPiece*> pieces;
  for (const StoredPiece& piece : stored.pieces) {
    if (std::ranges::any_of(entry.pieces, [&](const Piece& own) { return overlaps(piece, own.region); }))
      pieces.push_back(&piece);
  }
  return pieces;
}

std::optional<std::filesystem::path> choose(
    Group& group, const std::function<std::optional<checkpoint_format::Checkpoint>()>& choose) {
  std::string chosen;
  group.rank_0_first("verifying checkpoints", [&] {
    if (const auto found = choose()) chosen = found->path;
  });
  chosen = group.broadcast_bytes(chosen, 0);
  if (chosen.empty()) return std::nullopt;
  return chosen;
}

}  // namespace stretto::checkpoint
