#include "stretto/tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>

#include "stretto/base/error.h"
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

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<weights::SafetensorsTensor> listed;
  for (const auto& [name, tensor] : tensors) {
    listed.push_back({name, safetensors_dtype(tensor.scalar_type()), tensor.sizes().vec(),
                      static_cast<int64_t>(tensor.nbytes())});
  }
  write_file_atomic(path, [&](const WritePiece& write) {
    write(weights::safetensors_header(listed, metadata));
    ProgressBar bar("saving " + path.string(), std::ssize(tensors), "tensors");
    for (const auto& [name, tensor] : tensors) {
      bar.add();
      const Tensor plain = tensor.detach().to(at::kCPU).contiguous();
      write({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()});
    }
  });
}

}  // namespace stretto
