#include "stretto/tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/progress_bar.h"
#include "stretto/weights/safetensors_header.h"

namespace stretto {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

struct DtypeName {
  std::string_view name;
  at::ScalarType dtype;
};
constexpr std::array<DtypeName, 10> dtype_names = {{{"F64", at::kDouble},
                                                    {"F32", at::kFloat},
                                                    {"F16", at::kHalf},
                                                    {"BF16", at::kBFloat16},
                                                    {"I64", at::kLong},
                                                    {"I32", at::kInt},
                                                    {"I16", at::kShort},
                                                    {"I8", at::kChar},
                                                    {"U8", at::kByte},
                                                    {"BOOL", at::kBool}}};

void write_bytes(const Tensor& tensor, const WritePiece& write) {
  write({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
}

void write_tensor(const TensorSource& source, const std::string& name, const TensorType& type,
                  const WritePiece& write) {
  constexpr int64_t most = 1 << 20;  // elements at once
  if (const Tensor there = source.in_memory(name); there.defined())
    return write_bytes(there.detach().to(at::kCPU).contiguous(), write);
  const int64_t elements = count_elements(type.shape);
  const Tensor part = at::empty({std::min(elements, most)}, type.dtype);
  for (int64_t begin = 0; begin < elements; begin += most) {
    const int64_t end = std::min(elements, begin + most);
    const Tensor values = part.slice(0, 0, end - begin);
    source.read(name, flat_region(type.shape, begin, end), values);
    write_bytes(values, write);
  }
}

}  // namespace

const char* safetensors_dtype(at::ScalarType dtype) {
  for (const DtypeName& entry : dtype_names) {
    if (entry.dtype == dtype) return entry.name.data();
  }
  throw DataError("safetensors cannot hold tensors of type {}", c10::toString(dtype));
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(std::make_shared<MappedFile>(MappedFile::copy_on_write(path))) {
  weights::SafetensorsHeader header = weights::parse_safetensors_header(file_->text(), path.string());
  metadata_ = std::move(header.metadata);
  for (auto& [name, entry] : header.tensors) {
    const auto known = std::ranges::find(dtype_names, entry.dtype, &DtypeName::name);
    if (known == dtype_names.end())
      throw DataError("{}: tensor {} has the unknown type \"{}\"", path.string(), name, entry.dtype);
    entries_.emplace(name, Entry{known->dtype, std::move(entry.shape), entry.begin, entry.end});
  }
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

Tensor SafetensorsFile::load(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw DataError("{}: there is no tensor {}", path_.string(), name);
  const Entry& entry = found->second;
  const at::TensorOptions options(entry.dtype);
  if (entry.end == entry.begin) return at::empty(entry.shape, options);
  std::byte* data = file_->mutable_data() + entry.begin;
  const auto keep_mapped = [file = file_](void*) {};
  const Tensor mapped = at::from_blob(data, entry.shape, keep_mapped, options);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % c10::elementSize(entry.dtype) == 0;
  return aligned ? mapped : mapped.clone();
}

NamedTensors SafetensorsFile::load_all() const {
  NamedTensors tensors;
  for (const auto& [name, entry] : entries_) tensors.emplace(name, load(name));
  return tensors;
}

void save_safetensors(const std::filesystem::path& path, const ListedSource& tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<weights::SafetensorsTensor> listed;
  for (const auto& [name, type] : tensors.types()) {
    const int64_t bytes = count_elements(type.shape) * static_cast<int64_t>(c10::elementSize(type.dtype));
    listed.push_back({name, safetensors_dtype(type.dtype), type.shape, bytes});
  }
  write_file_atomic(path, [&](const WritePiece& write) {
    write(weights::safetensors_header(listed, metadata));
    ProgressBar bar("saving " + path.string(), std::ssize(listed), "tensors");
    for (const auto& [name, type] : tensors.types()) {
      bar.add();
      write_tensor(tensors, name, type, write);
    }
  });
}

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  save_safetensors(path, MemorySource(tensors), metadata);
}

}  // namespace stretto
