#include "tests/fuzz/fuzz.h"
#include <fmt/format.h>

#include "stretto/archive/manifest.h"
#include "stretto/base/hash.h"

// A checkpoint's manifest whose checksum is right: its end is written anew for each input.
namespace stretto::fuzz {
namespace {

using namespace archive;

constexpr std::string_view checksum_key = ",\"checksum\":\"";

std::string without_checksum(const Manifest& manifest) {
  const std::string text = to_text(manifest);
  return text.substr(0, text.rfind(checksum_key));
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

void run(const std::string& input) {
  const std::string text = fmt::format("{}{}{:016x}\"}}\n", input, checksum_key, hash64(input));
  const Manifest manifest = parse_manifest(text, "manifest.json");
  require(parse_manifest(to_text(manifest), "written").step == manifest.step,
          "a manifest that is written is read");
  require_complete(manifest, "manifest.json");
}

}  // namespace stretto::fuzz
