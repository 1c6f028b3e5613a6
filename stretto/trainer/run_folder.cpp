#include "stretto/trainer/run_folder.h"

#include "stretto/base/files.h"

namespace stretto {

RunFolder::RunFolder(std::filesystem::path path) : path_(std::move(path)) {
  make_folders(path_);
  write_text(".writable", "");
  std::filesystem::remove(path_ / ".writable");
}

void RunFolder::write_text(const std::string& name, const std::string& content) const {
  write_file_atomic(path_ / name, content);
}

void RunFolder::write_json(const std::string& name, const nlohmann::ordered_json& content) const {
  write_text(name, content.dump(2) + "\n");
}

void RunFolder::save_model(const Module& module, const NamedTensors& weights) const {
  const std::filesystem::path fresh = path_ / "model.new";
  remove_folder(fresh);
  make_folders(fresh);
  module.save(fresh, weights);
  replace_folder(fresh, model());
}

}  // namespace stretto
