#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stretto/tensor/tensor_source.h"

namespace stretto {

class MappedFile;

// A .safetensors file (format: https://huggingface.co/docs/safetensors): an 8-byte little-endian header
// length, a JSON header, then raw little-endian tensors. The file is mapped: tensors refer to the mapping and
// keep it alive, and only accessed pages are loaded. To replace such a file, rename another one over it;
// writing into it while it is mapped would change the tensors. Every size, offset and dtype is checked before
// data is accessed; DataError names the file and the tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  // A CPU tensor of the shape in the file; writing to it does not change the file.
  Tensor load(const std::string& name) const;
  NamedTensors load_all() const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Entry {
    at::ScalarType dtype;
    std::vector<int64_t> shape;
    int64_t begin, end;  // bytes of the file
  };

  std::filesystem::path path_;
  std::shared_ptr<MappedFile> file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// The name of a dtype in the format ("F32"). Throws DataError for unsupported dtypes.
const char* safetensors_dtype(at::ScalarType dtype);

// Writes all tensors of a source, or these (any device, any layout), atomically. Values that are not in this
// rank's memory are read and written in parts of a few MiB. Throws IoError.
void save_safetensors(const std::filesystem::path& path, const ListedSource& tensors,
                      const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace stretto
