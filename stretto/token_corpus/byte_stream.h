#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace stretto::token_corpus {

// The bytes of a file from its beginning on, decompressed if it is gzip or Zstandard, which its first bytes
// show.
class ByteStream {
 public:
  // Throws IoError if the file cannot be opened; DataError, which names what to do, for Parquet and for other
  // compressions.
  static std::unique_ptr<ByteStream> open(const std::filesystem::path& path);
  virtual ~ByteStream() = default;

  // Appends up to `count` bytes to `out`; fewer only at the end of the stream. Throws IoError, and DataError
  // where compressed data are damaged or cut short.
  virtual void read(size_t count, std::string& out) = 0;

  // Passes over the next `count` bytes, or to the end of the stream; false if it has fewer.
  virtual bool skip(int64_t count);

  // Bytes of the file read so far.
  virtual int64_t file_bytes() const = 0;
};

}  // namespace stretto::token_corpus
