#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/region.h"

namespace stretto::checkpoint_format {

// The elements of a region, stored in a file.
struct StoredPiece {
  Region region;
  std::string file;   // path inside the checkpoint's folder
  int64_t begin = 0;  // bytes from the file's start
  int64_t length = 0;
  uint64_t checksum = 0;  // XXH3, 64 bits, of those bytes
};

// A tensor of the state and its pieces in the files of all ranks.
struct StoredEntry {
  std::string dtype;  // safetensors' name: "F32"
  std::vector<int64_t> shape;
  std::vector<StoredPiece> pieces;
};

// A file and its safetensors header, the part that belongs to no piece. Of a file without tensors, such as
// the tokenizer's, the header is the whole file.
struct StoredFile {
  int64_t size = 0;
  int64_t header_length = 0;
  uint64_t header_checksum = 0;
};

// The metric by which the best checkpoints are chosen.
struct Score {
  std::string metric;
  double value = 0;
  bool larger_is_better = true;
};

// The content of manifest.json, the index of a checkpoint. docs/guide/checkpoints.md describes the format.
struct Manifest {
  static constexpr int format_version = 1;

  int64_t step = 0;
  int world_size = 1;  // ranks that wrote it
  std::optional<Score> score;
  std::map<std::string, StoredFile> files;
  std::map<std::string, StoredEntry> tensors;
  nlohmann::json scalars = nlohmann::json::object();  // by the part of the run whose state they are
};

inline constexpr const char* manifest_name = "manifest.json";

// The text of manifest.json, which ends with a checksum of the rest.
std::string to_text(const Manifest& manifest);

// Parses and checks the text of manifest.json; `place` begins every message. Throws DataError if the checksum
// differs, for impossible numbers, for a piece outside its tensor or file, and for a newer format.
Manifest parse_manifest(const std::string& text, const std::string& place);

// Throws DataError, naming tensor and files, unless each element of a tensor lies in exactly one of its
// pieces, and each byte of a file in its header or in exactly one piece. Every byte is then covered by a
// checksum.
void require_complete(const Manifest& manifest, const std::string& place);

// Bytes of an element of a safetensors dtype; throws DataError for an unknown one.
int64_t element_bytes(const std::string& dtype);

}  // namespace stretto::checkpoint_format
