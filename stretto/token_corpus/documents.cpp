#include "stretto/token_corpus/documents.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/input_file.h"
#include "stretto/text/parts.h"
#include "stretto/token_corpus/byte_stream.h"

namespace stretto::token_corpus {
namespace {

constexpr size_t none = std::string_view::npos;

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// A kept line end is "\n", also where it is "\r\n" in the file: the piece then ends with its first byte.
void translate_returns(Chunk& chunk) {
  for (const Piece& piece : chunk.pieces) {
    if (piece.ends && piece.end > piece.begin && chunk.bytes[piece.end - 1] == '\r')
      chunk.bytes[piece.end - 1] = '\n';
  }
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == none; }

}  // namespace

bool is_json_lines(const std::filesystem::path& file) {
  const std::string extension = text_extension(file);
  return extension == ".jsonl" || extension == ".json" || extension == ".ndjson";
}

DocumentReader::DocumentReader(std::vector<std::filesystem::path> files, DocumentOptions options,
                               bool in_parts, const Position& start)
    : files_(std::move(files)), options_(std::move(options)), in_parts_(in_parts), position_(start) {
  for (size_t i = 0; i < position_.file; ++i) bytes_before_ += InputFile(files_[i]).size();
  if (position_.offset > 0) open();
}

DocumentReader::~DocumentReader() = default;

// Opens the file at position_; a byte order mark at its beginning is not part of the text.
void DocumentReader::open() {
  const std::filesystem::path& file = files_[position_.file];
  stream_ = ByteStream::open(file, options_.column);
  buffer_.clear();
  ended_ = false;
  json_ = stream_->has_rows() || is_json_lines(file);
  if (!stream_->skip(position_.offset))
    throw DataError("{}: has fewer bytes than when its tokens were begun", file.string());
  if (position_.offset > 0) return;
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  fill(mark.size());
  if (!buffer_.starts_with(mark)) return;
  buffer_.erase(0, mark.size());
  position_.offset = std::ssize(mark);
}

int64_t DocumentReader::file_bytes() const { return bytes_before_ + (stream_ ? stream_->file_bytes() : 0); }

void DocumentReader::fill(size_t size) {
  if (ended_ || buffer_.size() >= size) return;
  stream_->read(size - buffer_.size(), buffer_);
  ended_ = buffer_.size() < size;
}

void DocumentReader::refuse_size() const {
  const std::string place = fmt::format("{}:{}", files_[position_.file].string(), position_.line);
  if (json_)
    throw DataError("{}: a line of more than {} MiB; expected one document per line", place,
                    most_whole_bytes >> 20);
  if (in_parts_) {
    throw DataError("{}: {} MiB without a space where the text could be cut; expected text with spaces",
                    place, most_whole_bytes >> 20);
  }
  throw DataError(
      "{}: a document of more than {} MiB; this tokenizer needs each document whole: separate documents by lines or blank lines",
      place, most_whole_bytes >> 20);
}

bool DocumentReader::next(Chunk& chunk) {
  while (position_.file < files_.size()) {
    if (!stream_) open();
    Split split;
    for (size_t wanted = chunk_bytes;; wanted *= 2) {
      fill(wanted);
      split = split_buffer();
      if (split.used > 0 || ended_) break;
      if (wanted >= most_whole_bytes) refuse_size();
    }
    chunk.begin = position_;
    chunk.bytes.assign(buffer_, 0, split.used);
    chunk.pieces = std::move(split.pieces);
    chunk.json = json_;
    buffer_.erase(0, split.used);
    position_.offset += static_cast<int64_t>(split.used);
    position_.line += std::ranges::count(chunk.bytes, '\n');
    if (keeps_newlines()) translate_returns(chunk);
    position_.in_document = split.in_document;
    chunk.file_bytes = file_bytes();
    if (ended_ && buffer_.empty()) {
      bytes_before_ = chunk.file_bytes;
      position_ = {.file = position_.file + 1};
      stream_.reset();
    }
    chunk.end = position_;
    return true;
  }
  return false;
}

DocumentReader::Split DocumentReader::split_buffer() const {
  if (json_ || options_.rule == DocumentRule::line) return split_lines();
  return options_.rule == DocumentRule::file ? split_file() : split_paragraphs();
}

// The buffer contains one document, or a part of one, that continues after the buffer: takes as much of it as
// can be cut off.
void DocumentReader::cut_document(Split& split) const {
  if (!in_parts_ || json_) return;
  const size_t cut = text::last_cut(buffer_);
  if (cut == 0) return;
  split.pieces.push_back({0, cut, !position_.in_document, /*ends=*/false});
  split.used = cut;
  split.in_document = true;
}

DocumentReader::Split DocumentReader::split_file() const {
  Split split;
  if (!ended_) {
    cut_document(split);
    return split;
  }
  split.pieces.push_back({0, buffer_.size(), !position_.in_document});
  split.used = buffer_.size();
  return split;
}

bool DocumentReader::keeps_newlines() const {
  return options_.keep_newlines && options_.rule == DocumentRule::line && !json_;
}

DocumentReader::Split DocumentReader::split_lines() const {
  const std::string_view bytes = buffer_;
  const bool keep = keeps_newlines();
  Split split;
  const auto add = [&](size_t begin, size_t end, size_t next) {
    const std::string_view line = bytes.substr(begin, end - begin);
    const size_t with_end = line.ends_with('\r') ? line.size() : next - begin;  // see translate_returns
    const size_t size = keep ? with_end : without_return(line).size();
    split.pieces.push_back({begin, begin + size, begin > 0 || !position_.in_document});
    split.used = next;
  };
  for (size_t end; (end = bytes.find('\n', split.used)) != none;) add(split.used, end, end + 1);
  if (ended_ && split.used < bytes.size()) add(split.used, bytes.size(), bytes.size());
  if (split.used == 0 && !ended_) cut_document(split);
  return split;
}

DocumentReader::Split DocumentReader::split_paragraphs() const {
  const std::string_view bytes = buffer_;
  Split split;
  size_t document = position_.in_document ? 0 : none;  // where the open document begins
  size_t text_end = 0;                                 // the end of its last line that is not blank
  const auto close = [&](size_t next) {
    if (document != none) {
      const bool continues = document == 0 && position_.in_document;
      split.pieces.push_back({document, text_end, !continues});
    }
    document = none;
    split.used = next;
  };
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = bytes.find('\n', begin);
    if (end == none && !ended_) break;
    const size_t next = end == none ? bytes.size() : end + 1;
    const std::string_view line = bytes.substr(begin, std::min(end, bytes.size()) - begin);
    // A document is cut only inside a line that is not blank.
    const bool rest_of_line = begin == 0 && position_.in_document;
    if (!rest_of_line && is_blank(line)) {
      close(next);
    } else {
      if (document == none) document = begin;
      text_end = begin + without_return(line).size();
    }
    begin = next;
  }
  if (ended_) {
    close(bytes.size());
  } else if (split.used == 0) {
    cut_document(split);
  }
  return split;
}

}  // namespace stretto::token_corpus
