#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stretto/base/files.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

using NamedTensors = std::map<std::string, Tensor>;

// A .safetensors file (format: https://huggingface.co/docs/safetensors): an 8-byte little-endian header length, a JSON
// header, then raw little-endian tensors. The file is mapped, not read: tensors lie in the mapping and keep it alive, so
// that only what is used is ever loaded. Replace such a file by renaming another over it; what is written into it while
// it is mapped would reach the tensors.
// Every size, offset and dtype is checked before any data is touched; DataError names the file and the tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  Tensor load(const std::string& name) const;  // a CPU tensor; writing to it does not change the file
  NamedTensors load_all() const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Entry {
    at::ScalarType dtype;
    std::vector<int64_t> shape;
    size_t begin;
    size_t end;
  };
  void read_header();
  Entry read_entry(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                   size_t begin, size_t end) const;

  std::filesystem::path path_;
  std::shared_ptr<MappedFile> file_;
  size_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// How the format spells a dtype ("F32"); throws DataError for one it does not have.
const char* safetensors_dtype(at::ScalarType dtype);

// Writes `tensors` (any device, any layout) whole or not at all.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace stretto
