#include "stretto/token_corpus/byte_stream.h"

#include <algorithm>
#include <array>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "stretto/base/error.h"
#include "stretto/base/input_file.h"
#include "stretto/base/strings.h"
#include "stretto/columnar/json_lines.h"

namespace stretto::token_corpus {
namespace {

constexpr size_t part_bytes = size_t{1} << 18;

// Reads the stored bytes of the file in parts.
class FileParts {
 public:
  explicit FileParts(const std::filesystem::path& path) : file_(path), part_(part_bytes) {}

  // Returns the next part; an empty one at the end. Valid until the next call.
  std::string_view next() {
    const auto left = static_cast<size_t>(file_.size() - position_);
    const std::span<char> wanted(part_.data(), std::min(part_.size(), left));
    file_.read(position_, wanted);
    position_ += std::ssize(wanted);
    return {wanted.data(), wanted.size()};
  }
  int64_t position() const { return position_; }
  std::string name() const { return file_.path().string(); }

 private:
  InputFile file_;
  std::vector<char> part_;
  int64_t position_ = 0;
};

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(const std::filesystem::path& path) : file_(path) {}

  void read(size_t count, std::string& out) override {
    const size_t before = out.size();
    const auto left = static_cast<size_t>(file_.size() - position_);
    out.resize(before + std::min(count, left));
    file_.read(position_, std::span(out).subspan(before));
    position_ += std::ssize(out) - static_cast<int64_t>(before);
  }
  bool skip(int64_t count) override {
    const int64_t left = file_.size() - position_;
    position_ += std::min(count, left);
    return count <= left;
  }
  int64_t file_bytes() const override { return position_; }

 private:
  InputFile file_;
  int64_t position_ = 0;
};

// A stream of decompressed bytes: decode() consumes `input_`.
class CompressedStream : public ByteStream {
 public:
  explicit CompressedStream(const std::filesystem::path& path) : parts_(path) {}

  void read(size_t count, std::string& out) override {
    const size_t wanted = out.size() + count;
    out.resize(wanted);
    size_t done = wanted - count;
    while (done < wanted) {
      if (input_.empty()) input_ = parts_.next();
      if (input_.empty()) {
        if (!between_members_)
          throw DataError("{}: the compressed data end early; the file is cut short", parts_.name());
        break;
      }
      done += decode(input_, std::span(out).subspan(done));
    }
    out.resize(done);
  }
  int64_t file_bytes() const override { return parts_.position() - std::ssize(input_); }

 protected:
  // Decompresses the beginning of `input`, which it removes, into `out`. Returns the number of bytes written,
  // which may be 0 although input was consumed. Sets between_members_.
  virtual size_t decode(std::string_view& input, std::span<char> out) = 0;

  [[noreturn]] void fail(const std::string& reason) const {
    throw DataError("{}: the compressed data are damaged near byte {}: {}", parts_.name(), file_bytes(),
                    reason);
  }

  bool between_members_ = true;  // the file may end here

 private:
  FileParts parts_;
  std::string_view input_;
};

// gzip (RFC 1952) with any number of members.
class GzipStream : public CompressedStream {
 public:
  explicit GzipStream(const std::filesystem::path& path) : CompressedStream(path) {
    if (::inflateInit2(&state_, 16 + MAX_WBITS) != Z_OK) throw Error("zlib cannot be initialised");
  }
  ~GzipStream() override { ::inflateEnd(&state_); }

 protected:
  size_t decode(std::string_view& input, std::span<char> out) override {
    if (between_members_ && ::inflateReset(&state_) != Z_OK) fail("zlib cannot be reset");
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    state_.avail_in = static_cast<uInt>(input.size());
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = static_cast<uInt>(std::min<size_t>(out.size(), size_t{1} << 30));
    const uInt room = state_.avail_out;
    const int result = ::inflate(&state_, Z_NO_FLUSH);
    input.remove_prefix(input.size() - state_.avail_in);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      fail(state_.msg == nullptr ? "not gzip" : state_.msg);
    between_members_ = result == Z_STREAM_END;
    return room - state_.avail_out;
  }

 private:
  z_stream state_{};
};

// Zstandard (RFC 8878) with any number of frames.
class ZstdStream : public CompressedStream {
 public:
  explicit ZstdStream(const std::filesystem::path& path)
      : CompressedStream(path), state_(::ZSTD_createDStream(), ::ZSTD_freeDStream) {
    if (!state_) throw Error("Zstandard cannot be initialised");
    ::ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, 31);  // accepts files of `zstd --long=31`
  }

 protected:
  size_t decode(std::string_view& input, std::span<char> out) override {
    ZSTD_inBuffer from{input.data(), input.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const size_t result = ::ZSTD_decompressStream(state_.get(), &to, &from);
    input.remove_prefix(from.pos);
    if (::ZSTD_isError(result) != 0) fail(::ZSTD_getErrorName(result));
    between_members_ = result == 0;
    return to.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> state_;
};

// The rows of a Parquet or Arrow file.
class RowStream : public ByteStream {
 public:
  RowStream(const std::filesystem::path& path, columnar::Format format, const std::string& column)
      : size_(InputFile(path).size()), rows_(path, format, column) {}

  void read(size_t count, std::string& out) override {
    while (count > 0) {
      if (waiting_.empty()) waiting_ = rows_.next();
      if (waiting_.empty()) {
        ended_ = true;
        return;
      }
      const std::string_view part = waiting_.substr(0, count);
      out += part;
      count -= part.size();
      waiting_.remove_prefix(part.size());
    }
  }
  int64_t file_bytes() const override {
    return ended_ ? size_ : static_cast<int64_t>(rows_.progress() * static_cast<double>(size_));
  }
  bool has_rows() const override { return true; }

 private:
  int64_t size_;
  columnar::JsonLines rows_;
  std::string_view waiting_;  // of the part that was read last
  bool ended_ = false;
};

std::string first_bytes(const std::filesystem::path& path) {
  constexpr int64_t most = 4096;  // enough to recognise text
  const InputFile file(path);
  std::string bytes(static_cast<size_t>(std::min(file.size(), most)), '\0');
  file.read(0, bytes);
  return bytes;
}

struct Refused {
  std::string_view begin, message;
};
constexpr std::array refused = {
    Refused{"\xFD"
            "7zXZ",
            "compressed by xz; expected text, gzip or Zstandard: decompress it with xz -d"},
    Refused{"BZh", "compressed by bzip2; expected text, gzip or Zstandard: decompress it with bzip2 -d"},
    Refused{"PK\x03\x04", "a zip archive; expected text, gzip or Zstandard: unpack it first"},
    Refused{"\xFF\xFE", "UTF-16; save it as UTF-8"},
    Refused{"\xFE\xFF", "UTF-16; save it as UTF-8"},
};

}  // namespace

bool ByteStream::skip(int64_t count) {
  std::string passed;
  while (count > 0) {
    passed.clear();
    read(static_cast<size_t>(std::min<int64_t>(count, part_bytes)), passed);
    if (passed.empty()) return false;
    count -= std::ssize(passed);
  }
  return true;
}

std::string text_extension(const std::filesystem::path& file) {
  std::filesystem::path name = lower_case(file.filename().string());
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return name.extension();
}

std::unique_ptr<ByteStream> ByteStream::open(const std::filesystem::path& path, const std::string& column) {
  const std::string begin = first_bytes(path);
  if (const auto format = columnar::format_of(begin))  // ids have columns beside them (encode_chunk.h)
    return std::make_unique<RowStream>(path, *format, column == "input_ids" ? "" : column);
  if (const std::string extension = text_extension(path); extension == ".csv" || extension == ".tsv") {
    throw DataError(
        "{}: a table, of which the text is one column; write that column as JSON Lines or Parquet, or name the file .txt if all of it is text",
        path.string());
  }
  if (begin.starts_with("\x1F\x8B")) return std::make_unique<GzipStream>(path);
  if (begin.starts_with("\x28\xB5\x2F\xFD")) return std::make_unique<ZstdStream>(path);
  for (const auto& [start, message] : refused) {
    if (begin.starts_with(start)) throw DataError("{}: {}", path.string(), message);
  }
  if (begin.find('\0') != std::string::npos)
    throw DataError("{}: a NUL byte near its beginning: the file is not text", path.string());
  return std::make_unique<PlainStream>(path);
}

void require_text(const std::filesystem::path& path, const std::string& column) {
  if (first_bytes(path).empty()) throw DataError("{}: there is no text in it", path.string());
  ByteStream::open(path, column);
}

}  // namespace stretto::token_corpus
