#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/input_file.h"
#include "stretto/checkpoint_format/manifest.h"

namespace stretto::checkpoint_format {

// Reads tensors of a checkpoint with a few MiB of memory, regardless of their size and of their division into
// pieces.
class TensorReader {
 public:
  // REQUIRES: `manifest` outlives the reader.
  TensorReader(std::filesystem::path checkpoint, const Manifest& manifest);

  // Passes the tensor's elements to `use`, in row-major order and in parts of at most 4 MiB. Throws
  // DataError, naming file and tensor, if a piece does not match its checksum; that is known only after the
  // last part, so the caller must not publish the data before this returns.
  void read(const std::string& tensor, const std::function<void(std::string_view bytes)>& use);

 private:
  struct PieceProgress;
  void fill(const StoredEntry& entry, PieceProgress& progress, const Region& window, std::span<char> bytes);
  const InputFile& file(const std::string& name);

  std::filesystem::path checkpoint_;
  const Manifest& manifest_;
  std::map<std::string, InputFile> files_;
  std::vector<char> part_, stored_;
};

}  // namespace stretto::checkpoint_format
