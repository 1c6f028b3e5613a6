#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "stretto/base/input_file.h"
#include "stretto/weights/safetensors_header.h"

namespace stretto::weights {

// The weights of a Hugging Face model folder, whose values are read in parts and not kept in memory.
class WeightSource {
 public:
  // Reads the headers. Throws DataError as weights::weight_files does.
  explicit WeightSource(const std::filesystem::path& folder);

  const std::map<std::string, weights::SafetensorsEntry>& weights() const { return weights_; }

  // Whether values of one dtype can be stored as another without loss: as the same or a wider one.
  static bool widens(const std::string& from, const std::string& to);

  // Fills `values` with the row-major elements of a weight from `first` on, as `dtype`. REQUIRES: the
  // elements exist, and widens(its dtype, dtype).
  void read(const std::string& name, int64_t first, const std::string& dtype, std::span<char> values);

 private:
  std::map<std::string, weights::SafetensorsEntry> weights_;
  std::map<std::string, const InputFile*> file_of_;
  std::map<std::filesystem::path, InputFile> files_;
  std::string narrow_;
};

}  // namespace stretto::weights
