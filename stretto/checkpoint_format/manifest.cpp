#include "stretto/checkpoint_format/manifest.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint_format/tiling.h"

namespace stretto::checkpoint_format {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// The text ends in `,"checksum":"<16 hexadecimal digits>"}` and a newline; the checksum covers everything
// before it.
constexpr std::string_view checksum_key = ",\"checksum\":\"";
constexpr std::string_view text_end = "\"}\n";
constexpr size_t checksum_digits = 16;

std::string to_hex(uint64_t value) { return fmt::format("{:016x}", value); }

uint64_t from_hex(const std::string& digits) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != checksum_digits || error != std::errc() || end != digits.data() + digits.size()) {
    throw DataError("\"{}\" is not a checksum", digits);
  }
  return value;
}

// A whole number in [least, most].
int64_t read_integer(const json& value, const char* name, int64_t least, int64_t most) {
  const auto number = whole_number(value);
  if (number && *number >= least && *number <= most) return *number;
  throw DataError("\"{}\" is {}; expected a whole number from {} to {}", name, value.dump(), least, most);
}

std::vector<int64_t> read_sizes(const json& values, const char* name) {
  if (!values.is_array()) throw DataError("\"{}\" is {}; expected a list of sizes", name, values.dump());
  std::vector<int64_t> sizes;
  for (const json& value : values) sizes.push_back(read_integer(value, name, 0, INT64_MAX));
  return sizes;
}

ordered_json to_json(const StoredPiece& piece) {
  return {{"offset", piece.region.offset},
          {"extent", piece.region.extent},
          {"flat", {piece.region.flat_begin, piece.region.flat_end}},
          {"file", piece.file},
          {"bytes", {piece.begin, piece.begin + piece.length}},
          {"xxh3", to_hex(piece.checksum)}};
}

// The value of a key that every such object has.
const json& member(const json& object, const char* key) {
  if (!object.is_object())
    throw DataError("expected an object with \"{}\", found a JSON {}", key, object.type_name());
  const auto found = object.find(key);
  if (found == object.end()) throw DataError("it lacks \"{}\", which every manifest has", key);
  return *found;
}

const std::string& read_text(const json& value, const char* name) {
  if (!value.is_string()) throw DataError("\"{}\" is a JSON {}; expected a string", name, value.type_name());
  return value.get_ref<const std::string&>();
}

const json& read_object(const json& value, const char* name) {
  if (!value.is_object()) throw DataError("\"{}\" is a JSON {}; expected an object", name, value.type_name());
  return value;
}

StoredPiece read_piece(const json& piece) {
  const auto range = [&](const char* name) {
    const json& values = member(piece, name);
    if (!values.is_array() || values.size() != 2)
      throw DataError("\"{}\" is {}; expected a list of two numbers", name, values.dump());
    const int64_t begin = read_integer(values[0], name, 0, INT64_MAX);
    return std::pair(begin, read_integer(values[1], name, begin, INT64_MAX));
  };
  StoredPiece result;
  result.region.offset = read_sizes(member(piece, "offset"), "offset");
  result.region.extent = read_sizes(member(piece, "extent"), "extent");
  std::tie(result.region.flat_begin, result.region.flat_end) = range("flat");
  result.file = read_text(member(piece, "file"), "file");
  const auto [begin, end] = range("bytes");
  result.begin = begin;
  result.length = end - begin;
  result.checksum = from_hex(read_text(member(piece, "xxh3"), "xxh3"));
  return result;
}

ordered_json to_json(const StoredEntry& entry) {
  ordered_json pieces = ordered_json::array();
  for (const StoredPiece& piece : entry.pieces) pieces.push_back(to_json(piece));
  return {{"dtype", entry.dtype}, {"shape", entry.shape}, {"pieces", std::move(pieces)}};
}

StoredEntry read_entry(const json& entry) {
  StoredEntry result;
  result.dtype = read_text(member(entry, "dtype"), "dtype");
  result.shape = read_sizes(member(entry, "shape"), "shape");
  count_elements(result.shape);  // throws if the number of elements overflows
  for (const json& piece : member(entry, "pieces")) result.pieces.push_back(read_piece(piece));
  return result;
}

// Throws unless a piece lies inside its tensor, and its bytes inside an existing file.
void check_piece(const StoredEntry& entry, const StoredPiece& piece, const Manifest& manifest) {
  const Region& region = piece.region;
  bool inside = region.offset.size() == entry.shape.size() && region.extent.size() == entry.shape.size();
  for (size_t axis = 0; inside && axis < entry.shape.size(); ++axis) {
    inside = region.extent[axis] <= entry.shape[axis] - region.offset[axis];
  }
  if (!inside) throw DataError("a piece lies outside its tensor of shape [{}]", fmt::join(entry.shape, ", "));
  if (region.flat_end > count_elements(region.extent)) {
    throw DataError("elements {} to {} lie outside a piece of [{}]", region.flat_begin, region.flat_end,
                    fmt::join(region.extent, ", "));
  }
  const auto file = manifest.files.find(piece.file);
  if (file == manifest.files.end()) throw DataError("its file \"{}\" is not among the files", piece.file);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(region.elements(), element_bytes(entry.dtype), &bytes) ||
      piece.length != bytes || piece.begin < file->second.header_length ||
      piece.begin > file->second.size - piece.length) {
    throw DataError("bytes {} to {} of {} do not fit its elements", piece.begin, piece.begin + piece.length,
                    piece.file);
  }
}

// A file in the folder, or in a subfolder: "rank-00000.safetensors", "words/tokenizer.json".
void require_inner_name(const std::string& name) {
  for (const std::string_view part : split(name, '/')) {
    if (part.empty() || part.front() == '.')
      throw DataError("\"{}\" is not the name of a file in the checkpoint's folder", name);
  }
}

// Throws for an impossible position in the data, with which a resumed run would read out of bounds.
void check_position(const json& scalars) {
  const auto position = scalars.find("place");
  const auto data = scalars.find("data");
  if (position == scalars.end() || data == scalars.end() || !position->is_object() || !data->is_object())
    return;
  if (!position->contains("samples") || !data->contains("samples")) return;
  const int64_t samples = read_integer(data->at("samples"), "data.samples", 0, INT64_MAX);
  read_integer(position->at("samples"), "place.samples", 0, samples);
}

Manifest read_fields(const json& content) {
  constexpr int64_t most_steps = int64_t{1} << 53;
  constexpr int64_t most_ranks = 1'000'000;
  Manifest manifest;
  manifest.step = read_integer(member(content, "step"), "step", 0, most_steps);
  manifest.world_size =
      static_cast<int>(read_integer(member(content, "world_size"), "world_size", 1, most_ranks));
  if (const auto score = content.find("score"); score != content.end()) {
    const json& value = member(*score, "value");
    const json& direction = member(*score, "larger_is_better");
    if (!value.is_number() || !direction.is_boolean())
      throw DataError("\"score\" is {}; expected a value and a direction", score->dump());
    manifest.score = {read_text(member(*score, "metric"), "metric"), value, direction};
  }
  for (const auto& [name, file] : read_object(member(content, "files"), "files").items()) {
    require_inner_name(name);
    const int64_t size = read_integer(member(file, "size"), "size", 0, INT64_MAX);
    manifest.files[name] = {size, read_integer(member(file, "header_bytes"), "header_bytes", 0, size),
                            from_hex(read_text(member(file, "header_xxh3"), "header_xxh3"))};
  }
  for (const auto& [name, entry] : read_object(member(content, "tensors"), "tensors").items()) {
    try {
      const StoredEntry& read = manifest.tensors[name] = read_entry(entry);
      for (const StoredPiece& piece : read.pieces) check_piece(read, piece, manifest);
    } catch (const DataError& error) {
      throw DataError("tensor {}: {}", name, error.what());
    }
  }
  manifest.scalars = read_object(member(content, "scalars"), "scalars");
  check_position(manifest.scalars);
  return manifest;
}

// Throws unless the text ends with the checksum of the rest.
void require_whole(const std::string& text) {
  const size_t tail = checksum_key.size() + checksum_digits + text_end.size();
  const std::string_view all = text;
  const bool has_tail =
      all.size() > tail && all.ends_with(text_end) && all.substr(all.size() - tail).starts_with(checksum_key);
  if (!has_tail) throw DataError("it does not end with its checksum: it was truncated or edited");
  const std::string digits(all.substr(all.size() - text_end.size() - checksum_digits, checksum_digits));
  const uint64_t found = hash64(all.substr(0, all.size() - tail));
  if (to_hex(found) != digits) {
    throw DataError("its checksum is {}, but it ends with {}: it was damaged or edited", to_hex(found),
                    digits);
  }
}

// Throws unless each element of the tensor lies in exactly one piece.
void require_partition(const std::string& name, const StoredEntry& entry) {
  std::vector<Region> regions;
  for (const StoredPiece& piece : entry.pieces) regions.push_back(piece.region);
  const auto wrong = first_miscovered(entry.shape, regions);
  if (!wrong) return;
  std::vector<std::string> holders;
  for (const StoredPiece& piece : entry.pieces) {
    if (contains(piece.region, wrong->element)) holders.push_back(piece.file);
  }
  const std::string element = fmt::format("tensor {} of shape [{}]: element [{}]", name,
                                          fmt::join(entry.shape, ", "), fmt::join(wrong->element, ", "));
  if (holders.empty()) throw DataError("{} lies in none of its {} pieces", element, entry.pieces.size());
  throw DataError("{} lies in {} of its pieces, in {}", element, holders.size(), fmt::join(holders, ", "));
}

// Throws unless each byte of the file belongs to its header or to exactly one piece.
void require_all_bytes(const std::string& name, const StoredFile& file, const Manifest& manifest) {
  struct Span {
    int64_t begin, end;
    const std::string* tensor;
  };
  std::vector<Span> spans;
  for (const auto& [tensor, entry] : manifest.tensors) {
    for (const StoredPiece& piece : entry.pieces) {
      if (piece.file == name && piece.length > 0)
        spans.push_back({piece.begin, piece.begin + piece.length, &tensor});
    }
  }
  std::ranges::sort(spans, {}, &Span::begin);
  int64_t described = file.header_length;
  const std::string* before = nullptr;
  for (const Span& span : spans) {
    if (span.begin < described) {
      throw DataError("{}: bytes {} to {} belong to tensor {} and to tensor {}", name, span.begin,
                      std::min(described, span.end), *before, *span.tensor);
    }
    if (span.begin > described) break;
    described = span.end;
    before = span.tensor;
  }
  if (described < file.size) throw DataError("{}: the bytes from {} on belong to no tensor", name, described);
}

}  // namespace

int64_t element_bytes(const std::string& dtype) {
  static const std::map<std::string, int64_t> bytes = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                                       {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                                       {"U8", 1},  {"BOOL", 1}};
  const auto found = bytes.find(dtype);
  if (found == bytes.end()) throw DataError("\"{}\" is not a supported dtype", dtype);
  return found->second;
}

std::string to_text(const Manifest& manifest) {
  ordered_json content = {{"format", "stretto checkpoint"},
                          {"format_version", Manifest::format_version},
                          {"step", manifest.step},
                          {"world_size", manifest.world_size}};
  if (manifest.score) {
    content["score"] = {{"metric", manifest.score->metric},
                        {"value", manifest.score->value},
                        {"larger_is_better", manifest.score->larger_is_better}};
  }
  content["files"] = ordered_json::object();
  for (const auto& [name, file] : manifest.files) {
    content["files"][name] = {{"size", file.size},
                              {"header_bytes", file.header_length},
                              {"header_xxh3", to_hex(file.header_checksum)}};
  }
  ordered_json::object_t tensors;  // operator[] would compare each name with all earlier ones
  for (const auto& [name, entry] : manifest.tensors) tensors.push_back({name, to_json(entry)});
  content["tensors"] = std::move(tensors);
  content["scalars"] = manifest.scalars;
  std::string text = content.dump();
  text.pop_back();  // the closing brace comes after the checksum
  const std::string checksum = to_hex(hash64(text));
  return text.append(checksum_key).append(checksum).append(text_end);
}

Manifest parse_manifest(const std::string& text, const std::string& place) {
  try {
    const json content = parse_json(text, place);
    const int64_t version = read_integer(member(content, "format_version"), "format_version", 1, INT64_MAX);
    if (version > Manifest::format_version) {
      throw DataError(
          "its format {} is newer than {}, the newest that this version of stretto supports: use a newer version",
          version, Manifest::format_version);
    }
    require_whole(text);
    return read_fields(content);
  } catch (const DataError& error) {
    const std::string message = error.what();
    throw DataError("{}{}", message.starts_with(place) ? "" : place + ": ", message);
  }
}

void require_complete(const Manifest& manifest, const std::string& place) {
  try {
    for (const auto& [name, entry] : manifest.tensors) require_partition(name, entry);
    for (const auto& [name, file] : manifest.files) require_all_bytes(name, file, manifest);
  } catch (const DataError& error) {
    throw DataError("{}: {}", place, error.what());
  }
}

}  // namespace stretto::checkpoint_format
