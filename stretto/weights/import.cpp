#include "stretto/weights/import.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/stream_hash.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/weights/new_folder.h"
#include "stretto/weights/weight_source.h"

namespace stretto::weights {
namespace {

constexpr int64_t part_bytes = int64_t{4} << 20;

using checkpoint_format::Manifest;
using checkpoint_format::StoredEntry;
using checkpoint_format::StoredPiece;

void require_weight(const std::string& name, const StoredEntry& stored, const WeightSource& source) {
  const auto found = source.weights().find(name);
  if (found == source.weights().end()) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : source.weights()) names.push_back(known);
    throw DataError("it lacks the weight {} of the checkpoint{}: it is another model", name,
                    did_you_mean(name, names));
  }
  const weights::SafetensorsEntry& weight = found->second;
  if (weight.shape != stored.shape) {
    throw DataError("{} is [{}] there and [{}] in the checkpoint: it is another model", name,
                    fmt::join(weight.shape, ", "), fmt::join(stored.shape, ", "));
  }
  if (!WeightSource::widens(weight.dtype, stored.dtype)) {
    throw DataError(
        "{} is {} there and {} in the checkpoint, which cannot hold its values: save the model as {}", name,
        weight.dtype, stored.dtype, stored.dtype);
  }
}

void require_same_weights(const Manifest& manifest, const WeightSource& source) {
  for (const auto& [name, entry] : manifest.tensors) {
    if (name.starts_with(model_prefix)) require_weight(name.substr(model_prefix.size()), entry, source);
  }
  for (const auto& [name, weight] : source.weights()) {
    if (!manifest.tensors.contains(std::string(model_prefix) + name))
      throw DataError("it has a weight {} that the checkpoint has not: it is another model", name);
  }
}

// A piece of a file and the tensor that it belongs to.
struct Part {
  const std::string* tensor;
  StoredEntry* entry;
  StoredPiece* piece;
};

// The pieces in a file, in the order of its bytes.
std::vector<Part> parts_of(Manifest& manifest, const std::string& file) {
  std::vector<Part> parts;
  for (auto& [name, entry] : manifest.tensors) {
    for (StoredPiece& piece : entry.pieces) {
      if (piece.file == file) parts.push_back({&name, &entry, &piece});
    }
  }
  std::ranges::stable_sort(parts, {}, [](const Part& part) { return part.piece->begin; });
  return parts;
}

// Copies bytes, and throws DataError unless they have this checksum.
class Copier {
 public:
  Copier(const std::filesystem::path& source, FileWriter& target, const Progress& progress)
      : source_(source), target_(target), progress_(progress) {}

  void copy(int64_t begin, int64_t length, uint64_t checksum, const std::string& what) {
    StreamHash hash;
    for (int64_t done = 0; done < length;) {
      buffer_.resize(static_cast<size_t>(std::min(part_bytes, length - done)));
      source_.read(begin + done, buffer_);
      hash.add(buffer_);
      write(buffer_);
      done += std::ssize(buffer_);
    }
    if (hash.value() == checksum) return;
    throw DataError("{}: {} is damaged (bytes {} to {} differ from their checksum)", source_.path().string(),
                    what, begin, begin + length);
  }

  // Writes the values of a weight in place of a piece's, and sets its checksum.
  void put(const Part& part, WeightSource& weights) {
    StreamHash hash;
    const Region& region = part.piece->region;
    const int64_t element = checkpoint_format::element_bytes(part.entry->dtype);
    for (int64_t at = region.flat_begin; at < region.flat_end;) {
      const int64_t count =
          std::min({row_rest(region, part.entry->shape, at), region.flat_end - at, part_bytes / element});
      buffer_.resize(static_cast<size_t>(count * element));
      weights.read(part.tensor->substr(model_prefix.size()), global_index(region, part.entry->shape, at),
                   part.entry->dtype, buffer_);
      hash.add(buffer_);
      write(buffer_);
      at += count;
    }
    part.piece->checksum = hash.value();
  }

 private:
  // How many elements of the box from `at` on are adjacent in the tensor.
  static int64_t row_rest(const Region& region, const std::vector<int64_t>& shape, int64_t at) {
    if (region.extent == shape) return region.flat_end - at;
    return region.extent.back() - at % region.extent.back();
  }

  static int64_t global_index(const Region& region, const std::vector<int64_t>& shape, int64_t at) {
    int64_t index = 0, stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      index += (region.offset[axis] + at % region.extent[axis]) * stride;
      at /= region.extent[axis];
      stride *= shape[axis];
    }
    return index;
  }

  void write(const std::string& bytes) {
    target_.write(bytes);
    progress_(std::ssize(bytes));
  }

  InputFile source_;
  FileWriter& target_;
  const Progress& progress_;
  std::string buffer_;
};

// The layout is that of the checkpoint `state`, so that its headers remain valid.
void write_file(const std::filesystem::path& state, const std::filesystem::path& folder,
                const std::string& name, Manifest& manifest, WeightSource& weights,
                const Progress& progress) {
  const checkpoint_format::StoredFile& stored = manifest.files.at(name);
  make_folders((folder / name).parent_path());
  FileWriter file(folder / name);
  Copier copier(state / name, file, progress);
  copier.copy(0, stored.header_length, stored.header_checksum, "the header");
  for (const Part& part : parts_of(manifest, name)) {
    if (part.tensor->starts_with(model_prefix)) {
      copier.put(part, weights);
    } else {
      copier.copy(part.piece->begin, part.piece->length, part.piece->checksum, "tensor " + *part.tensor);
    }
  }
  file.finish();
}

// The name of a checkpoint's folder must be that of its step if it names one.
void require_matching_name(const std::filesystem::path& target, int64_t step) {
  const std::string expected = checkpoint_format::checkpoint_path({}, step).string(),
                    name = target.filename().string();
  if (!name.starts_with("step-") || name == expected) return;
  throw ConfigError(
      "{}: a checkpoint of step {} is written; name its folder {}, or something that does not begin with step-",
      target.string(), step, expected);
}

}  // namespace

int64_t checkpoint_bytes(const Manifest& manifest) {
  int64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) bytes += file.size;
  return bytes;
}

void import_model(const std::filesystem::path& model, const std::filesystem::path& state,
                  const std::filesystem::path& target, const Progress& progress) {
  Manifest manifest = checkpoint_format::read_manifest(state);
  require_matching_name(target, manifest.step);
  WeightSource weights(model);
  try {
    require_same_weights(manifest, weights);
  } catch (const DataError& error) {
    throw DataError("{}: {}", model.string(), error.what());
  }
  NewFolder folder(target, "the checkpoint");
  for (const auto& [name, file] : manifest.files)
    write_file(state, folder.path(), name, manifest, weights, progress);
  write_file_atomic(folder.path() / checkpoint_format::manifest_name, checkpoint_format::to_text(manifest));
  folder.commit();
}

}  // namespace stretto::weights
