#pragma once

#include <filesystem>
#include <string>

namespace stretto::weights {

// A folder that is written under another name, "<path>.partial", and appears under its own name when it is
// complete. Destruction before commit() removes it.
class NewFolder {
 public:
  // `what`: the kind of the content, for messages. Throws ConfigError if `path` exists, IoError if it cannot
  // be created.
  NewFolder(std::filesystem::path path, const std::string& what);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();

  const std::filesystem::path& path() const { return partial_; }  // to write into
  void commit();

 private:
  void discard() const;

  std::filesystem::path path_, partial_;
  bool committed_ = false;
};

}  // namespace stretto::weights
