#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::weights {

// The header of a .safetensors file (format: https://huggingface.co/docs/safetensors): an 8-byte
// little-endian length, JSON, then the data.

// A tensor in the file.
struct SafetensorsEntry {
  std::string dtype;  // as in the format: "F32"
  std::vector<int64_t> shape;
  int64_t begin = 0;  // its bytes, from the start of the file
  int64_t end = 0;
};

struct SafetensorsHeader {
  int64_t bytes = 0;  // the length field and the JSON; the data follow
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Parses the header of an untrusted file. `content`: the file's bytes, of which only the header is read.
// Every size, offset and dtype is checked; throws DataError with `name` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view content, const std::string& name);

// A tensor to be written.
struct SafetensorsTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

// The header of a file with these tensors, in this order and without gaps. Its length is a multiple of 8,
// which aligns the data.
std::string safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                               const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace stretto::weights
