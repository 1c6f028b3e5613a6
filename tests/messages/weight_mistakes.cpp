#include "tests/messages/mistakes.h"

#include "stretto/base/files.h"
#include "stretto/weights/export.h"
#include "stretto/weights/hub_pull.h"
#include "stretto/weights/pickle.h"
#include "stretto/weights/safetensors_header.h"
#include "stretto/weights/shards.h"
#include "stretto/weights/torch_file.h"
#include "stretto/weights/weight_files.h"

namespace stretto {

void add_weights(Mistakes& all) {
  const auto pickle = [&](const char* name, const std::string& content) {
    all.push_back({std::string("pickle: ") + name,  //
                   [=] { weights::read_pickled_tensors(content, "model.bin"); }});
  };
  pickle("code",
         "\x80\x02"
         "cos\nsystem\n.");
  pickle("cut short", "");
  pickle("no dictionary", "\x80\x02].");
  all.push_back({"torch.save: no zip archive", [] {
                   write_file_atomic("pytorch_model.bin", "text");
                   weights::TorchFile("pytorch_model.bin");
                 }});
  const auto folder = [&](const char* name, const char* file, const std::string& content) {
    all.push_back({std::string("weights: ") + name, [=] {
                     write_file_atomic(file, content);
                     weights::weight_files(".");
                   }});
  };
  folder("none", "config.json", "{}");
  folder("an index without a map", "model.safetensors.index.json", "{}");
  folder("a missing shard", "model.safetensors.index.json",
         R"({"weight_map": {"w": "model-00001-of-00002.safetensors"}})");
  folder("a shard outside of the folder", "model.safetensors.index.json", R"({"weight_map": {"w": "../w"}})");
  const auto header = [&](const char* name, const std::string& json) {
    all.push_back({std::string("safetensors: ") + name, [=] {
                     std::string content(8, '\0');
                     content[0] = static_cast<char>(json.size());
                     weights::parse_safetensors_header(content + json, "model.safetensors");
                   }});
  };
  all.push_back(
      {"safetensors: too short", [] { weights::parse_safetensors_header("abc", "model.safetensors"); }});
  header("no object", "[]");
  header("cut short", R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})");
  all.push_back(
      {"export: no checkpoint", [] { weights::export_model("/no/such/step-00000003", "/no/such/model"); }});
  all.push_back({"export: not a size", [] { weights::parse_size("5 Gb"); }});
  all.push_back({"hub: not a name", [] { hub::pull("a/b/c", {}, {}); }});
  all.push_back({"hub: not a revision", [] { hub::pull("a/bert", {.revision = "../x"}, {}); }});
}

}  // namespace stretto
