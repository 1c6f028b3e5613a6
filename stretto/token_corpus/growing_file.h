#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "stretto/base/fd.h"
#include "stretto/base/stream_hash.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::token_corpus {

// A file that is appended to, together with the hash of its content. After a crash, writing can continue from
// the last synchronised size.
class GrowingFile {
 public:
  // Creates the file, or opens the file of an interrupted run and keeps its first `kept.bytes` bytes. Throws
  // IoError, and DataError if these are missing or have another checksum.
  GrowingFile(const std::filesystem::path& path, const CheckedFile& kept);

  // Throws IoError. A part may have been written then; it is removed when the file is opened again.
  void write(std::string_view bytes);
  void sync();  // makes written bytes durable. Throws IoError

  CheckedFile state() const;
  int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  Fd file_;
  int64_t bytes_;
  StreamHash hash_;
};

// Formats a hash as the checksum in a manifest.
std::string checksum_text(uint64_t hash);

// Adds the first `bytes` bytes of a file to `hash`; calls progress(bytes) repeatedly. Throws IoError, also if
// the file has fewer bytes.
void hash_file(const std::filesystem::path& path, int64_t bytes, StreamHash& hash,
               const std::function<void(int64_t bytes)>& progress = {});

}  // namespace stretto::token_corpus
