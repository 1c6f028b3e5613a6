#include "stretto/weights/weight_source.h"

#include <cstring>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/weights/float_types.h"
#include "stretto/weights/weight_files.h"

namespace stretto::weights {
namespace {

template <class Wide>
void widen(const std::string& narrow, const FloatType& from, int64_t step, std::span<char> values) {
  for (size_t at = 0, source = 0; at < values.size();
       at += sizeof(Wide), source += static_cast<size_t>(step)) {
    const auto value = static_cast<Wide>(from.read(narrow.data() + source));
    std::memcpy(values.data() + at, &value, sizeof value);
  }
}

}  // namespace

WeightSource::WeightSource(const std::filesystem::path& folder) {
  for (const auto& [path, wanted] : weights::weight_files(folder)) {
    const MappedFile mapped(path);
    const weights::SafetensorsHeader header = weights::parse_safetensors_header(mapped.text(), path.string());
    const InputFile& file = files_.emplace(path, InputFile(path)).first->second;
    const auto add = [&](const std::string& name) {
      const auto found = header.tensors.find(name);
      if (found == header.tensors.end()) throw DataError("{}: there is no tensor {}", path.string(), name);
      weights_[name] = found->second;
      file_of_[name] = &file;
    };
    for (const std::string& name : wanted) add(name);
    if (!wanted.empty()) continue;
    for (const auto& [name, entry] : header.tensors) add(name);
  }
}

bool WeightSource::widens(const std::string& from, const std::string& to) {
  const FloatType *narrow = find_float_type(from), *wide = find_float_type(to);
  return from == to || (narrow != nullptr && wide != nullptr && narrow->rank < wide->rank);
}

void WeightSource::read(const std::string& name, int64_t first, const std::string& dtype,
                        std::span<char> values) {
  const weights::SafetensorsEntry& weight = weights_.at(name);
  const InputFile& file = *file_of_.at(name);
  const int64_t element = checkpoint_format::element_bytes(weight.dtype);
  if (weight.dtype == dtype) return file.read(weight.begin + first * element, values);
  const int64_t count = static_cast<int64_t>(values.size()) / checkpoint_format::element_bytes(dtype);
  narrow_.resize(static_cast<size_t>(count * element));
  file.read(weight.begin + first * element, narrow_);
  const FloatType& from = *find_float_type(weight.dtype);
  dtype == "F64" ? widen<double>(narrow_, from, element, values)
                 : widen<float>(narrow_, from, element, values);
}

}  // namespace stretto::weights
