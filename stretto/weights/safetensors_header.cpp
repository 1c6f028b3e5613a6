#include "stretto/weights/safetensors_header.h"

#include <cstring>
#include <optional>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/region.h"
#include "stretto/checkpoint_format/manifest.h"

namespace stretto::weights {
namespace {

constexpr uint64_t max_json_bytes = 100'000'000;  // the limit of the format's own library

std::optional<int64_t> bytes_of(const std::string& dtype) {
  try {
    return checkpoint_format::element_bytes(dtype);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

void check_entry(const std::string& name, const SafetensorsEntry& entry, int64_t data_bytes,
                 const std::string& file) {
  if (entry.begin > entry.end || entry.end > data_bytes) {
    throw DataError(
        "{}: tensor {} lies at bytes {} to {}, but the file holds {} bytes of data; it is truncated", file,
        name, entry.begin, entry.end, data_bytes);
  }
  const auto element = bytes_of(entry.dtype);
  if (!element) throw DataError("{}: tensor {} has the unknown type \"{}\"", file, name, entry.dtype);
  const auto elements = checked_elements(entry.shape);
  int64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, *element, &bytes) || bytes != entry.end - entry.begin) {
    throw DataError("{}: tensor {} has shape [{}] of {}, which does not match its {} bytes", file, name,
                    fmt::join(entry.shape, ", "), entry.dtype, entry.end - entry.begin);
  }
}

SafetensorsEntry read_entry(const std::string& name, const nlohmann::json& value, const std::string& file) {
  const auto size = [&](const nlohmann::json& number) {
    const auto whole = whole_number(number);
    if (whole && *whole >= 0) return *whole;
    throw DataError("{}: tensor {}: {} is not a size or an offset", file, name, number.dump());
  };
  SafetensorsEntry entry = {.dtype = {}, .shape = {}};
  for (const auto& extent : value.at("shape")) entry.shape.push_back(size(extent));
  value.at("dtype").get_to(entry.dtype);
  entry.begin = size(value.at("data_offsets").at(0));
  entry.end = size(value.at("data_offsets").at(1));
  return entry;
}

SafetensorsHeader read_json_header(std::string_view text, int64_t data_bytes, const std::string& file) {
  const auto json = parse_json(text, file, 8);
  if (!json.is_object()) throw DataError("{}: the safetensors header is not a JSON object", file);
  SafetensorsHeader header;
  header.bytes = static_cast<int64_t>(sizeof(uint64_t) + text.size());
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      value.get_to(header.metadata);
      continue;
    }
    SafetensorsEntry entry = read_entry(name, value, file);
    check_entry(name, entry, data_bytes, file);
    entry.begin += header.bytes;
    entry.end += header.bytes;
    header.tensors.emplace(name, std::move(entry));
  }
  return header;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view content, const std::string& name) {
  uint64_t json_bytes = 0;
  if (content.size() < sizeof json_bytes) {
    throw DataError(
        "{}: {} bytes is too short for a safetensors file; it is truncated or not a safetensors file", name,
        content.size());
  }
  std::memcpy(&json_bytes, content.data(), sizeof json_bytes);
  const size_t rest = content.size() - sizeof json_bytes;
  if (json_bytes > rest || json_bytes > max_json_bytes) {
    throw DataError(
        "{}: the safetensors header claims {} bytes, the file has {}; it is truncated or not a safetensors file",
        name, json_bytes, content.size());
  }
  try {
    return read_json_header(content.substr(sizeof json_bytes, json_bytes),
                            static_cast<int64_t>(rest - json_bytes), name);
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: the safetensors header has an entry of the wrong form: {}", name, error.what());
  }
}

std::string safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  using nlohmann::ordered_json;
  ordered_json::object_t entries;  // operator[] would compare each name with all earlier ones
  if (!metadata.empty()) entries.push_back({"__metadata__", metadata});
  int64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const int64_t end = offset + tensor.bytes;
    const ordered_json entry = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    entries.push_back({tensor.name, entry});
    offset = end;
  }
  std::string text = ordered_json(std::move(entries)).dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace stretto::weights
