#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "stretto/base/fd.h"
#include "stretto/base/stream_hash.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::token_corpus {

// A file that grows at its end and can be gone on with after a crash, with the hash of its content.
class GrowingFile {
 public:
  // Creates the file, or opens the one of an interrupted run, whose first `kept.bytes` are kept. Throws
  // IoError, and DataError where these are missing or have another checksum.
  GrowingFile(const std::filesystem::path& path, const CheckedFile& kept);

  // Throws IoError; a part may then be written, which is cut off when the file is opened again.
  void write(std::string_view bytes);
  void sync();  // what is written survives a power failure. Throws IoError

  CheckedFile state() const;
  int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  Fd file_;
  int64_t bytes_;
  StreamHash hash_;
};

// The checksum of bytes.
std::string checksum_text(uint64_t hash);

// Adds the first `bytes` bytes of a file to `hash`; progress(bytes) is called on the way. Throws IoError,
// also where it has fewer.
void hash_file(const std::filesystem::path& path, int64_t bytes, StreamHash& hash,
               const std::function<void(int64_t bytes)>& progress = {});

}  // namespace stretto::token_corpus
