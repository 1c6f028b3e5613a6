#include "stretto/base/held_file.h"

#include <utility>

#include "stretto/base/files.h"

namespace stretto {
namespace {

constexpr size_t most_held = size_t{1} << 20;

}  // namespace

HeldFile::HeldFile(std::filesystem::path path, bool hold) : path_(std::move(path)) {
  if (!hold) release();
}

void HeldFile::write(std::string_view bytes) {
  if (file_) return file_->write(bytes);
  held_ += bytes;
  if (held_.size() > most_held) release();
}

void HeldFile::release() {
  if (file_) return;
  make_folders(path_.parent_path());
  file_.emplace(path_);
  const std::string text = std::exchange(held_, {});
  if (!text.empty()) file_->write(text);
}

}  // namespace stretto
