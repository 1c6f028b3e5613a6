#include "stretto/trainer/run_folder.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {

RunLock::RunLock(const std::filesystem::path& output) {
  make_folders(output);
  const std::filesystem::path path = output / ".lock";
  file_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_) throw IoError("cannot write {}: {}", path.string(), std::strerror(errno));
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return;
  throw ConfigError("another run is writing into {}; wait for its end, or choose another output",
                    output.string());
}

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
