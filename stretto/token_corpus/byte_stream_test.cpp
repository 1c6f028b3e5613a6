#include "stretto/token_corpus/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include "stretto/base/message_support.h"
#include "stretto/token_corpus/corpus_fixture.h"

namespace stretto::token_corpus {
namespace {

std::string gzip(const std::string& bytes) {
  z_stream state{};
  EXPECT_EQ(::deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&state, bytes.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  ::deflateEnd(&state);
  return out;
}

std::string zstd(const std::string& bytes) {
  std::string out(::ZSTD_compressBound(bytes.size()), '\0');
  out.resize(::ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

class ByteStreams : public CorpusTest {
 protected:
  static std::string read(const fs::path& file, size_t count = 10'000, int64_t skip = 0) {
    const auto stream = ByteStream::open(file);
    EXPECT_TRUE(stream->skip(skip));
    std::string bytes;
    for (size_t before = 1; before != bytes.size();) {
      before = bytes.size();
      stream->read(count, bytes);
    }
    EXPECT_EQ(stream->file_bytes(), static_cast<int64_t>(fs::file_size(file)));
    return bytes;
  }
};

TEST_F(ByteStreams, AreDecompressedAccordingToTheirFirstBytes) {
  const std::string text = random_text(3'000'000, 1), more = random_text(100'000, 2);
  const std::vector<fs::path> files = {write("plain", text + more), write("gz", gzip(text) + gzip(more)),
                                       write("zst", zstd(text) + zstd("") + zstd(more))};
  for (const fs::path& file : files) {
    EXPECT_TRUE(read(file) == text + more) << file;
    EXPECT_TRUE(read(file, 1 << 20, 1'234'567) == (text + more).substr(1'234'567)) << file;
    EXPECT_FALSE(ByteStream::open(file)->skip(10'000'000)) << file;
  }
  EXPECT_EQ(read(write("empty", "")), "");
  EXPECT_EQ(read(write("gz", gzip(""))), "");
}

TEST_F(ByteStreams, TruncatedOrDamagedOnesAreRefused) {
  const std::string text = random_text(500'000, 3);
  for (const auto& [name, bytes] : {std::pair("gz", gzip(text)), std::pair("zst", zstd(text))}) {
    for (const size_t cut : {bytes.size() - 1, bytes.size() / 2, size_t{20}}) {
      const fs::path file = write(name, bytes.substr(0, cut));
      EXPECT_THAT(message_of<DataError>([&] { read(file); }), has_all(name, "cut short")) << cut;
    }
    std::string damaged = bytes;
    for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 50; ++i)
      damaged[i] = static_cast<char>(~damaged[i]);
    const fs::path file = write(name, damaged);
    EXPECT_THAT(message_of<DataError>([&] { read(file); }), has_all(name, "damaged"));
  }
}

TEST_F(ByteStreams, OtherFormatsAreRefusedWithAdvice) {
  const auto refused = [&](const std::string& bytes, const char* what) {
    const fs::path file = write("file", bytes);
    EXPECT_THAT(message_of<DataError>([&] { ByteStream::open(file); }), has_all("file", what));
  };
  refused(
      "\xFD"
      "7zXZ..",
      "xz -d");
  refused("BZh91AY", "bzip2 -d");
  refused(std::string("\xFF\xFEh\0e\0", 6), "UTF-8");
  refused(std::string("text\0text", 9), "NUL");
  for (const char* name : {"rows.csv", "rows.TSV", "rows.csv.gz"}) {
    const fs::path file = write(name, "text\na\n");
    EXPECT_THAT(message_of<DataError>([&] { ByteStream::open(file); }),
                has_all(name, "a table", "JSON Lines"));
  }
  EXPECT_THROW(ByteStream::open(path("missing")), IoError);
  EXPECT_THROW(ByteStream::open(folder_.path()), IoError);
}

}  // namespace
}  // namespace stretto::token_corpus
