#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::weights {

// A tensor of a file that torch.save wrote: a view of a storage, which is another record of the file.
struct PickledTensor {
  std::string storage;       // its name: record data/<storage>
  std::string dtype;         // as in safetensors: "F32"
  int64_t storage_size = 0;  // elements of the storage
  int64_t offset = 0;        // element at which the tensor begins
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
};

// Reads the tensors of a pickled state_dict (the record data.pkl of a pytorch_model.bin) by name. Nothing is
// executed: the reader supports numbers, texts, lists, dictionaries and the form in which torch writes
// tensors, and refuses a pickle that refers to anything else. All elements of a tensor are inside its
// storage. `file` is for messages. Throws DataError.
std::map<std::string, PickledTensor> read_pickled_tensors(std::string_view pickle, const std::string& file);

}  // namespace stretto::weights
