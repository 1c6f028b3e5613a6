#include "stretto/weights/torch_file.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/weights/zip_records.h"

namespace stretto::weights {
namespace {

constexpr size_t read_bytes = size_t{4} << 20;

// Files of PyTorch before 1.6 are a sequence of pickles, not a zip archive.
void require_zip(std::string_view content, const std::string& name) {
  if (content.starts_with("PK\3\4")) return;
  throw DataError(
      "{}: not a file of torch.save of PyTorch 1.6 or later, which is a zip archive; load it with an older torch and save it again, or convert the folder with transformers' save_pretrained",
      name);
}

std::string_view record(const std::map<std::string, std::string_view>& records, const std::string& wanted,
                        const std::string& file) {
  const auto found = records.find(wanted);
  if (found != records.end()) return found->second;
  throw DataError("{}: lacks the record \"{}\"; the file is damaged, or no torch.save wrote it", file,
                  wanted);
}

bool is_contiguous(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

}  // namespace

TorchFile::TorchFile(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (!std::filesystem::is_regular_file(path)) throw IoError("{}: cannot be read", name);
  file_ = std::make_shared<MappedFile>(MappedFile::copy_on_write(path));
  require_zip(file_->text(), name);
  const auto records = zip_records(file_->text(), name);
  if (const auto order = records.find("byteorder"); order != records.end() && order->second != "little")
    throw DataError("{}: its byte order is \"{}\"; expected little", name, order->second);
  tensors_ = read_pickled_tensors(record(records, "data.pkl", name), name);
  std::map<std::string, std::string> types;
  for (const auto& [key, tensor] : tensors_) {
    const std::string_view storage = storages_[tensor.storage] =
        record(records, "data/" + tensor.storage, name);
    const auto element = static_cast<size_t>(checkpoint_format::element_bytes(tensor.dtype));
    if (storage.size() % element != 0 ||
        storage.size() / element != static_cast<uint64_t>(tensor.storage_size)) {
      throw DataError("{}: data/{} has {} bytes; expected {} elements of {}; the file is damaged", name,
                      tensor.storage, storage.size(), tensor.storage_size, tensor.dtype);
    }
    if (types.emplace(tensor.storage, tensor.dtype).first->second != tensor.dtype)
      throw DataError("{}: the storage {} is used with two types or sizes", name, tensor.storage);
  }
}

std::byte* TorchFile::storage(const PickledTensor& tensor) const {
  return file_->mutable_data() + (storages_.at(tensor.storage).data() - file_->text().data());
}

void TorchFile::read(const PickledTensor& tensor,
                     const std::function<void(std::string_view bytes)>& use) const {
  const auto element = static_cast<size_t>(checkpoint_format::element_bytes(tensor.dtype));
  const std::string_view storage = storages_.at(tensor.storage);
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  if (is_contiguous(tensor)) {
    std::string_view rest =
        storage.substr(static_cast<size_t>(tensor.offset) * element, static_cast<size_t>(count) * element);
    while (!rest.empty()) {
      use(rest.substr(0, read_bytes));
      rest.remove_prefix(std::min(read_bytes, rest.size()));
    }
    return;
  }
  std::string part;
  std::vector<int64_t> index(tensor.shape.size());
  for (int64_t i = 0, at = tensor.offset; i < count; ++i) {
    part.append(storage.substr(static_cast<size_t>(at) * element, element));
    if (part.size() + element > read_bytes) {
      use(part);
      part.clear();
    }
    for (size_t axis = index.size(); axis-- > 0;) {
      at += tensor.strides[axis];
      if (++index[axis] < tensor.shape[axis]) break;
      at -= tensor.strides[axis] * tensor.shape[axis];
      index[axis] = 0;
    }
  }
  if (!part.empty()) use(part);
}

}  // namespace stretto::weights
