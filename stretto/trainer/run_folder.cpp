#include "stretto/trainer/run_folder.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {
namespace {

using LockClock = std::chrono::steady_clock;
constexpr std::chrono::seconds lock_patience{3};

}  // namespace

RunLock::RunLock(const std::filesystem::path& output) {
  make_folders(output);
  const std::filesystem::path path = output / ".lock";
  file_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_) throw IoError("cannot write {}: {}", path.string(), std::strerror(errno));
  // A run that was killed a moment ago may still be on its way out.
  for (const auto deadline = LockClock::now() + lock_patience; LockClock::now() < deadline;) {
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) throw IoError("cannot lock {}: {}", path.string(), std::strerror(errno));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
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
