#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "stretto/base/files.h"
#include "stretto/weights/pickle.h"

namespace stretto::weights {

// A pytorch_model.bin: a state_dict that torch.save of PyTorch 1.6 or later wrote. The file is mapped, and
// its pickle read by pickle.h, which executes nothing.
class TorchFile {
 public:
  // Reads the names, shapes and dtypes of the tensors, and checks that their storages exist. Throws
  // DataError, naming the file, if it refers to anything but tensors, is truncated or has another format;
  // IoError if it cannot be read.
  explicit TorchFile(const std::filesystem::path& file);

  const std::map<std::string, PickledTensor>& tensors() const { return tensors_; }

  // The bytes of the tensor's storage: storage_size elements. Writing to them does not change the file.
  std::byte* storage(const PickledTensor& tensor) const;

  // Passes the tensor's elements to `use`, in row-major order and in parts of at most 4 MiB.
  void read(const PickledTensor& tensor, const std::function<void(std::string_view bytes)>& use) const;

  // Memory of the file, which storage() refers to.
  const std::shared_ptr<MappedFile>& mapping() const { return file_; }

 private:
  std::shared_ptr<MappedFile> file_;
  std::map<std::string, PickledTensor> tensors_;
  std::map<std::string, std::string_view> storages_;
};

}  // namespace stretto::weights
