#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace stretto::token_corpus {

// Reads the bytes of a file in order. Files whose first bytes show gzip or Zstandard are decompressed. Those
// of a Parquet or Arrow file are its rows as JSON Lines.
class ByteStream {
 public:
  // `column`: of a Parquet or Arrow file, as columnar::JsonLines takes it. Throws IoError if the file cannot
  // be opened; DataError, with advice, for other compressions, tables (.csv, .tsv), and like
  // columnar::JsonLines.
  static std::unique_ptr<ByteStream> open(const std::filesystem::path& path, const std::string& column = "");
  virtual ~ByteStream() = default;

  // Appends up to `count` bytes to `out`, fewer only at the end of the stream. Throws IoError, and DataError
  // if compressed data are damaged or truncated.
  virtual void read(size_t count, std::string& out) = 0;

  // Skips the next `count` bytes; returns false, at the end of the stream, if it has fewer.
  virtual bool skip(int64_t count);

  // The number of bytes of the file read so far.
  virtual int64_t file_bytes() const = 0;

  // Whether the bytes are JSON Lines, whatever the name of the file.
  virtual bool has_rows() const { return false; }
};

// The extension of a file's name in lower case, without that of its compression: ".jsonl" of "A.JSONL.gz".
std::string text_extension(const std::filesystem::path& file);

// Throws DataError if the file is empty, or its beginning is not that of a file that ByteStream reads.
void require_text(const std::filesystem::path& path, const std::string& column = "");

}  // namespace stretto::token_corpus
