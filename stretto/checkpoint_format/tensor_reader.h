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

// Reads tensors of a checkpoint with a few MiB of memory, whatever their size and however they are cut into pieces.
class TensorReader {
 public:
  // `manifest` must outlive it.
  TensorReader(std::filesystem::path checkpoint, const Manifest& manifest);

  // Passes the tensor's elements to `use`, in row-major order and in parts of at most 4 MiB. After the last part each piece
  // has been compared with its checksum: throws DataError naming file and tensor if one is damaged, so `use` must not
  // publish what it was given before this returns.
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
