#include "tests/messages/mistakes.h"
#include <fmt/format.h>

#include "stretto/base/hash.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/manifest.h"

namespace stretto {
namespace {

using checkpoint_format::Manifest;

// A 2 x 3 tensor whose rows are in two files.
std::string manifest_text() {
  Manifest manifest;
  manifest.step = 7;
  manifest.world_size = 2;
  manifest.files = {{"rank-00000.safetensors", {.size = 24, .header_length = 12}},
                    {"rank-00001.safetensors", {.size = 20, .header_length = 8}}};
  manifest.tensors["w"] = {"F32",
                           {2, 3},
                           {{{{0, 0}, {1, 3}, 0, 3}, "rank-00000.safetensors", 12, 12, 1},
                            {{{1, 0}, {1, 3}, 0, 3}, "rank-00001.safetensors", 8, 12, 2}}};
  return to_text(manifest);
}

// Returns `text` with its checksum recomputed.
std::string sealed(std::string text) {
  text.resize(text.size() - std::string(",\"checksum\":\"0123456789abcdef\"}\n").size());
  return fmt::format("{},\"checksum\":\"{:016x}\"}}\n", text, hash64(text));
}

void parse(const std::string& text) {
  checkpoint_format::require_complete(checkpoint_format::parse_manifest(text, "manifest.json"),
                                      "manifest.json");
}

}  // namespace

void add_checkpoints(Mistakes& all) {
  const auto text = [&](const char* name, const std::string& content) {
    all.push_back({std::string("manifest: ") + name, [=] { parse(content); }});
  };
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string content = manifest_text();
    return content.replace(content.find(from), from.size(), to);
  };
  const auto sealed_text = [&](const char* name, const std::string& from, const std::string& to) {
    text(name, sealed(replaced(from, to)));
  };
  text("no object", "[]");
  text("another JSON", "{}");
  text("edited", replaced("\"step\":7", "\"step\":8"));
  sealed_text("a newer format", "\"format_version\":1", "\"format_version\":2");
  sealed_text("a step that is a word", "\"step\":7", "\"step\":\"x\"");
  sealed_text("an unknown type", "\"dtype\":\"F32\"", "\"dtype\":\"F31\"");
  sealed_text("an impossible shape", "\"shape\":[2,3]", "\"shape\":[4611686018427387904,4]");
  sealed_text("a file outside of the folder", "\"rank-00001.safetensors\":{", "\"../rank-1.safetensors\":{");
  sealed_text("bytes that do not fit", "\"bytes\":[12,24]", "\"bytes\":[12,25]");
  sealed_text("elements outside of their piece", "\"flat\":[0,3]", "\"flat\":[0,4]");
  sealed_text("a piece outside of its tensor", "\"offset\":[1,0]", "\"offset\":[2,0]");
  sealed_text("a gap", "\"shape\":[2,3]", "\"shape\":[2,4]");
  sealed_text("an overlap", "\"offset\":[1,0]", "\"offset\":[0,0]");
  sealed_text("bytes of no tensor", "\"size\":24", "\"size\":25");
  all.push_back({"checkpoint: none", [] { checkpoint_format::read_manifest("step-00000003"); }});
}

}  // namespace stretto
