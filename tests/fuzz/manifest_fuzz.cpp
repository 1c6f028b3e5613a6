#include <algorithm>
#include <array>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/mutate_json.h"
#include <fmt/format.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/checkpoint_format/manifest.h"

// Input: a checkpoint's manifest with a valid checksum, which is recomputed for each input. For accepted
// manifests with small tensors, the result of require_complete() is checked element by element and byte by
// byte.
namespace stretto::fuzz {
namespace {

using namespace checkpoint_format;

constexpr std::string_view checksum_key = ",\"checksum\":\"";

std::string without_checksum(const Manifest& manifest) {
  const std::string text = to_text(manifest);
  return text.substr(0, text.rfind(checksum_key));
}

std::string with_checksum(const std::string& input) {
  return fmt::format("{}{}{:016x}\"}}\n", input, checksum_key, hash64(input));
}

// Splits the region in two, along an axis or as a flat range, recursively.
void cut(const Region& region, std::vector<Region>& parts, std::mt19937_64& random) {
  const bool is_box = region.elements() == count_elements(region.extent);
  if (region.elements() < 2 || random() % 3 == 0) return parts.push_back(region);
  std::array<Region, 2> halves = {region, region};
  const size_t axis = region.extent.empty() ? 0 : random() % region.extent.size();
  if (is_box && region.extent[axis] > 1 && random() % 2 == 0) {
    const int64_t rows = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(region.extent[axis] - 1));
    halves[0].extent[axis] = rows;
    halves[1].extent[axis] -= rows;
    halves[1].offset[axis] += rows;
    for (Region& half : halves) half.flat_end = count_elements(half.extent);
  } else {
    halves[0].flat_end = halves[1].flat_begin =
        region.flat_begin + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(region.elements() - 1));
  }
  for (const Region& half : halves) cut(half, parts, random);
}

// Moves, grows or shrinks the region by one along an axis, and sets its number of elements accordingly.
void shift(Region& region, std::mt19937_64& random) {
  if (region.extent.empty()) return;
  const size_t axis = random() % region.extent.size();
  int64_t& changed = random() % 2 == 0 ? region.offset[axis] : region.extent[axis];
  changed = std::max<int64_t>(0, changed + (random() % 2 == 0 ? 1 : -1));
  region.flat_begin = 0;
  region.flat_end = count_elements(region.extent);
}

// A new tensor whose pieces, one of them sometimes wrong, are appended to random files.
void add_tensor(Manifest& manifest, std::mt19937_64& random) {
  constexpr std::array dtypes = {"F64", "F32", "BF16", "I8"};
  StoredEntry entry = {.dtype = dtypes[random() % dtypes.size()], .shape = {}, .pieces = {}};
  for (uint64_t axes = random() % 4; axes > 0; --axes)
    entry.shape.push_back(static_cast<int64_t>(random() % 6));
  std::vector<Region> regions;
  cut(whole_region(entry.shape), regions, random);
  if (random() % 8 == 0) shift(regions[random() % regions.size()], random);
  if (random() % 16 == 0) regions.pop_back();
  for (const Region& region : regions) {
    const std::string name = fmt::format("rank-{:05}.safetensors", random() % 3);
    StoredFile& file = manifest.files[name];
    const int64_t length = region.elements() * element_bytes(entry.dtype);
    entry.pieces.push_back(
        {.region = region, .file = name, .begin = file.size, .length = length, .checksum = random()});
    file.size += length;
  }
  manifest.tensors[fmt::format("t{}", manifest.tensors.size())] = entry;
}

bool holds_exactly_once(const StoredEntry& entry) {
  std::vector<int> held(static_cast<size_t>(count_elements(entry.shape)));
  for (const StoredPiece& piece : entry.pieces) {
    for (int64_t flat = piece.region.flat_begin; flat < piece.region.flat_end; ++flat) {
      int64_t in_piece = flat, in_tensor = 0, stride = 1;
      for (size_t axis = entry.shape.size(); axis-- > 0;) {
        const int64_t extent = piece.region.extent[axis];
        in_tensor += (piece.region.offset[axis] + in_piece % extent) * stride;
        in_piece /= extent;
        stride *= entry.shape[axis];
      }
      ++held[static_cast<size_t>(in_tensor)];
    }
  }
  return std::ranges::all_of(held, [](int count) { return count == 1; });
}

bool describes_each_byte_once(const Manifest& manifest, const std::string& name, const StoredFile& file) {
  std::vector<int> described(static_cast<size_t>(file.size));
  std::fill_n(described.begin(), file.header_length, 1);
  for (const auto& [tensor, entry] : manifest.tensors) {
    for (const StoredPiece& piece : entry.pieces) {
      if (piece.file != name) continue;
      for (int64_t byte = 0; byte < piece.length; ++byte)
        ++described[static_cast<size_t>(piece.begin + byte)];
    }
  }
  return std::ranges::all_of(described, [](int count) { return count == 1; });
}

bool is_small(const Manifest& manifest) {
  constexpr int64_t most = 4096;
  return std::ranges::all_of(manifest.files, [](const auto& file) { return file.second.size <= most; }) &&
         std::ranges::all_of(manifest.tensors, [](const auto& tensor) {
           return tensor.second.shape.size() <= 8 && count_elements(tensor.second.shape) <= most;
         });
}

bool is_complete(const Manifest& manifest) {
  return std::ranges::all_of(manifest.tensors,
                             [](const auto& tensor) { return holds_exactly_once(tensor.second); }) &&
         std::ranges::all_of(manifest.files, [&](const auto& file) {
           return describes_each_byte_once(manifest, file.first, file.second);
         });
}

}  // namespace

std::vector<std::string> seeds() {
  Manifest manifest;
  manifest.step = 4;
  manifest.world_size = 2;
  manifest.score = {{.metric = "accuracy", .value = 0.5}};
  manifest.files["rank-00000.safetensors"] = {.size = 124, .header_length = 100, .header_checksum = 1};
  StoredEntry entry = {.dtype = "F32", .shape = {2, 3}, .pieces = {}};
  entry.pieces.push_back({.region = whole_region({2, 3}),
                          .file = "rank-00000.safetensors",
                          .begin = 100,
                          .length = 24,
                          .checksum = 7});
  manifest.tensors["weight"] = entry;
  manifest.scalars = {{"epoch", 1}, {"place", {{"samples", 12}}}};
  return {without_checksum(manifest), without_checksum(Manifest{})};
}

std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  std::string changed = input;
  if (random() % 4 != 0) {
    Manifest manifest = parse_manifest(with_checksum(input), "manifest.json");
    if (manifest.tensors.size() < 8) add_tensor(manifest, random);
    changed = without_checksum(manifest);
    if (random() % 4 != 0) return changed;
  }
  changed = mutate_json(changed + "}", random);
  if (changed.ends_with('}')) changed.pop_back();
  return changed;
}

void run(const std::string& input) {
  const Manifest manifest = parse_manifest(with_checksum(input), "manifest.json");
  require(parse_manifest(to_text(manifest), "written").step == manifest.step,
          "a manifest that is written is read");
  const bool small = is_small(manifest);
  const bool complete = small && is_complete(manifest);
  try {
    require_complete(manifest, "manifest.json");
    require(!small || complete, "what is not complete is refused");
  } catch (const DataError&) {
    require(!complete, "what is complete is accepted");
    throw;
  }
}

}  // namespace stretto::fuzz
