#include "stretto/tensor/pickled_weights.h"

#include <array>
#include <fstream>

#include <caffe2/serialize/inline_container.h>

#include <ATen/ops/from_blob.h>

#include "stretto/archive/pickle.h"
#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr std::array dtypes = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                               at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};

at::ScalarType parse_dtype(const std::string& name) {
  for (const at::ScalarType dtype : dtypes)
    if (name == safetensors_dtype(dtype)) return dtype;
  throw DataError("{} is not the type of a tensor", name);
}

// Files of PyTorch before 1.6 are a sequence of pickles, not a zip archive.
void require_zip(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw IoError("{}: cannot be read", file.string());
  std::array<char, 4> begin{};
  in.read(begin.data(), begin.size());
  if (in.gcount() == 4 && begin == std::array{'P', 'K', '\3', '\4'}) return;
  throw DataError(
      "{}: not a file of torch.save of PyTorch 1.6 or later, which is a zip archive; load it with an older torch and save it again, or convert the folder with transformers' save_pretrained",
      file.string());
}

// A file that torch.save wrote. Records are stored without compression, so none is larger than the file.
class TorchFile {
 public:
  explicit TorchFile(const std::filesystem::path& file) : name_(file.string()) {
    require_zip(file);
    size_ = std::filesystem::file_size(file);
    guarded([&] { reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(name_); });
    if (has("byteorder")) {
      const auto [data, size] = record("byteorder");
      const std::string_view order(static_cast<const char*>(data.get()), size);
      if (order != "little") throw DataError("{}: its byte order is \"{}\"; expected little", name_, order);
    }
    const auto [data, size] = record("data.pkl");
    tensors_ = archive::read_pickled_tensors({static_cast<const char*>(data.get()), size}, name_);
  }

  const std::map<std::string, archive::PickledTensor>& tensors() const { return tensors_; }

  Tensor load(const archive::PickledTensor& tensor) {
    const auto [found, is_new] = storages_.try_emplace(tensor.storage);
    if (is_new) found->second = load_storage(tensor);
    const Tensor& storage = found->second;
    const at::ScalarType dtype = parse_dtype(tensor.dtype);
    if (storage.scalar_type() != dtype || storage.numel() != tensor.storage_size)
      throw DataError("{}: the storage {} is used with two types or sizes", name_, tensor.storage);
    return storage.as_strided(tensor.shape, tensor.strides, tensor.offset);
  }

 private:
  bool has(const std::string& name) {
    bool found = false;
    guarded([&] { found = reader_->hasRecord(name); });
    return found;
  }

  std::pair<at::DataPtr, size_t> record(const std::string& name) {
    if (!has(name))
      throw DataError("{}: lacks the record \"{}\"; the file is damaged, or no torch.save wrote it", name_,
                      name);
    std::pair<at::DataPtr, size_t> result;
    guarded([&] {
      if (reader_->getRecordSize(name) > size_) {
        throw DataError("{}: the record \"{}\" claims {} bytes, more than the file has; it is damaged", name_,
                        name, reader_->getRecordSize(name));
      }
      auto [data, size] = reader_->getRecord(name);
      result = {std::move(data), size};
    });
    return result;
  }

  Tensor load_storage(const archive::PickledTensor& tensor) {
    auto [data, size] = record("data/" + tensor.storage);
    const at::ScalarType dtype = parse_dtype(tensor.dtype);
    if (size / c10::elementSize(dtype) != static_cast<uint64_t>(tensor.storage_size) ||
        size % c10::elementSize(dtype) != 0) {
      throw DataError("{}: data/{} has {} bytes; expected {} elements of {}; the file is damaged", name_,
                      tensor.storage, size, tensor.storage_size, tensor.dtype);
    }
    void* bytes = data.get();
    auto owner = std::make_shared<at::DataPtr>(std::move(data));
    return at::from_blob(
        bytes, {tensor.storage_size}, [owner](void*) mutable { owner.reset(); }, dtype);
  }

  // libtorch's errors as ours; their texts speak of its zip reader.
  template <class Action>
  void guarded(const Action& action) {
    try {
      action();
    } catch (const c10::Error&) {
      throw DataError("{}: the file was cut short or is damaged; copy it again", name_);
    }
  }

  std::string name_;
  uintmax_t size_ = 0;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
  std::map<std::string, archive::PickledTensor> tensors_;
  std::map<std::string, Tensor> storages_;
};

}  // namespace

NamedTensors load_pickled_weights(const std::filesystem::path& path) {
  TorchFile file(path);
  NamedTensors weights;
  for (const auto& [name, tensor] : file.tensors()) weights.emplace(name, file.load(tensor));
  return weights;
}

std::vector<std::string> pickled_weight_names(const std::filesystem::path& path) {
  std::vector<std::string> names;
  const TorchFile file(path);
  for (const auto& [name, tensor] : file.tensors()) names.push_back(name);
  return names;
}

}  // namespace stretto
