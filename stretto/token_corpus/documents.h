#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::token_corpus {

class ByteStream;

// How a plain text file is divided into documents.
enum class DocumentRule {
  file,        // the whole file
  line,        // each line
  blank_line,  // each run of lines between blank lines
};
constexpr auto names_of(DocumentRule) {
  return std::to_array<std::string_view>({"file", "line", "blank-line"});
}

// How a file is divided into documents.
struct DocumentOptions {
  DocumentRule rule =
      DocumentRule::file;      // for plain text; each line of JSON Lines and each row is a document
  bool keep_newlines = false;  // keeps the line ends of lines, as "\n", as part of their documents
  // The key of the text, or of a list of ids, in JSON Lines, or its column in Parquet and Arrow files.
  std::string column = "text";
};

// Whether a file is read as JSON Lines: its name ends with .jsonl, .json or .ndjson, which .gz or .zst may
// follow.
bool is_json_lines(const std::filesystem::path& file);

// The maximum size of a line of JSON Lines and of a document that cannot be read in parts, in bytes.
inline constexpr size_t most_whole_bytes = size_t{64} << 20;

// A document, or a part of one.
struct Piece {
  size_t begin = 0, end = 0;  // in Chunk::bytes
  bool begins = true;         // whether the piece begins its document
  bool ends = true;
};

// A position between two chunks of a sequence of files.
struct Position {
  size_t file = 0;
  int64_t offset = 0;        // in the file's decompressed bytes
  int64_t line = 1;          // the line that contains the byte at `offset`
  bool in_document = false;  // the next piece continues the current document
};

// Consecutive documents of one file with about chunk_bytes in total: the unit of parallel work.
struct Chunk {
  std::string bytes;
  std::vector<Piece> pieces;
  bool json = false;       // pieces are objects of JSON Lines
  Position begin, end;     // the next chunk begins at `end`
  int64_t file_bytes = 0;  // the stored bytes of all files up to the end of this chunk
};
inline constexpr size_t chunk_bytes = size_t{1} << 20;

// Reads files one after the other in chunks. The content of a chunk depends only on its position, so reading
// can begin at the end of any chunk. The memory in use does not depend on the files' sizes; with `in_parts`
// it does not depend on the documents' sizes either: long documents are then cut where text/parts.h allows
// it.
class DocumentReader {
 public:
  DocumentReader(std::vector<std::filesystem::path> files, DocumentOptions options, bool in_parts,
                 const Position& start = {});
  ~DocumentReader();

  // The number of stored bytes of the files read so far.
  int64_t file_bytes() const;

  // Reads the next chunk; returns false at the end. Throws IoError, and DataError with file and line.
  bool next(Chunk& chunk);

 private:
  // The result of splitting the beginning of the buffer.
  struct Split {
    std::vector<Piece> pieces;
    size_t used = 0;           // the number of bytes taken; 0: more bytes are needed
    bool in_document = false;  // whether a document is open after them
  };

  void open();
  void fill(size_t size);
  Split split_buffer() const;
  Split split_file() const;
  bool keeps_newlines() const;
  Split split_lines() const;
  Split split_paragraphs() const;
  void cut_document(Split& split) const;
  [[noreturn]] void refuse_size() const;

  std::vector<std::filesystem::path> files_;
  DocumentOptions options_;
  bool in_parts_;
  Position position_;
  std::unique_ptr<ByteStream> stream_;  // the open file at position_; null: it is not open
  std::string buffer_;                  // the bytes that follow position_
  bool ended_ = false;                  // the stream has no bytes after the buffer
  bool json_ = false;
  int64_t bytes_before_ = 0;  // the stored bytes of the previous files
};

}  // namespace stretto::token_corpus
