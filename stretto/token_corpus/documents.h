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

// What a document of a plain text file is.
enum class DocumentRule {
  file,        // the whole file
  line,        // each line
  blank_line,  // what blank lines separate
};
constexpr auto names_of(DocumentRule) {
  return std::to_array<std::string_view>({"file", "line", "blank-line"});
}

struct DocumentOptions {
  DocumentRule rule = DocumentRule::file;  // of plain text; each line of JSON Lines is a document
  bool keep_newlines = false;              // of lines: the line end belongs to its document
  std::string column = "text";             // of JSON Lines: the key of the text
};

// Whether a file is read as JSON Lines: .jsonl, .json or .ndjson, also before .gz or .zst.
bool is_json_lines(const std::filesystem::path& file);

// A document that is not read in parts may have so many bytes, and a line of JSON Lines.
inline constexpr size_t most_whole_bytes = size_t{64} << 20;

// A document, or a part of one.
struct Piece {
  size_t begin = 0, end = 0;  // in Chunk::bytes
  bool begins = true;         // the document
  bool ends = true;
};

// A position between two chunks of a sequence of files.
struct Position {
  size_t file = 0;
  int64_t offset = 0;        // in the file's decompressed bytes
  int64_t line = 1;          // of the byte at `offset`
  bool in_document = false;  // the next piece continues the document of the last one
};

// Consecutive documents of one file, about chunk_bytes: the unit of parallel work.
struct Chunk {
  std::string bytes;
  std::vector<Piece> pieces;
  bool json = false;       // pieces are objects of JSON Lines
  Position begin, end;     // the next chunk begins at `end`
  int64_t file_bytes = 0;  // of all files, as they are stored, up to the end of this chunk
};
inline constexpr size_t chunk_bytes = size_t{1} << 20;

// Reads files one after the other as chunks. What a chunk holds depends on its position only, so that reading
// can begin at the end of any chunk. The memory it takes does not depend on the files' sizes, nor with
// `in_parts` on those of documents: longer ones are then cut where text/parts.h allows it.
class DocumentReader {
 public:
  DocumentReader(std::vector<std::filesystem::path> files, DocumentOptions options, bool in_parts,
                 const Position& start = {});
  ~DocumentReader();

  // Bytes of the files, as they are stored, that were read so far.
  int64_t file_bytes() const;

  // The next chunk, false at the end. Throws IoError, and DataError with file and line.
  bool next(Chunk& chunk);

 private:
  // What the beginning of the buffer holds.
  struct Split {
    std::vector<Piece> pieces;
    size_t used = 0;           // bytes; 0: more are needed
    bool in_document = false;  // after them
  };

  void open();
  void fill(size_t size);
  Split split_buffer() const;
  Split split_file() const;
  Split split_lines() const;
  Split split_paragraphs() const;
  void cut_document(Split& split) const;
  [[noreturn]] void refuse_size() const;

  std::vector<std::filesystem::path> files_;
  DocumentOptions options_;
  bool in_parts_;
  Position position_;
  std::unique_ptr<ByteStream> stream_;  // of the file of position_; null: not opened
  std::string buffer_;                  // from position_ on
  bool ended_ = false;                  // the stream holds no more than the buffer
  bool json_ = false;
  int64_t bytes_before_ = 0;  // of the files in front of this one
};

}  // namespace stretto::token_corpus
