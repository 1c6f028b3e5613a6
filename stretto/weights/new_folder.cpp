#include "stretto/weights/new_folder.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"

namespace stretto::weights {

NewFolder::NewFolder(std::filesystem::path path, const std::string& what)
    : path_(path.has_filename() ? std::move(path) : path.parent_path()),
      partial_(path_.string() + ".partial") {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path_, ignored))) {
    throw ConfigError(
        "{} exists already; expected the name of a new folder for {}: choose another, or remove it",
        path_.string(), what);
  }
  try {
    remove_folder(partial_);
    make_folders(partial_);
  } catch (...) {
    discard();
    throw;
  }
}

NewFolder::~NewFolder() {
  if (!committed_) discard();
}

void NewFolder::discard() const {
  try {
    remove_folder(partial_);
  } catch (const Error& error) {
    log::warning("{}", error.what());
  }
}

void NewFolder::commit() {
  sync_folder(partial_);
  rename_folder(partial_, path_);
  committed_ = true;
}

}  // namespace stretto::weights
