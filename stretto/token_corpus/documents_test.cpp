#include "stretto/token_corpus/documents.h"

#include "stretto/base/message_support.h"
#include "stretto/text/parts.h"
#include "stretto/token_corpus/corpus_fixture.h"

namespace stretto::token_corpus {
namespace {

using testing::ElementsAre;

class Documents : public CorpusTest {
 protected:
  // Returns the documents that a reader finds from `start` on; the first may be the rest of one.
  static std::vector<std::string> read(const std::vector<fs::path>& files, const DocumentOptions& options,
                                       bool in_parts = true, const Position& start = {}) {
    DocumentReader reader(files, options, in_parts, start);
    std::vector<std::string> documents;
    Chunk chunk;
    bool open = false;
    while (reader.next(chunk)) {
      for (const Piece& piece : chunk.pieces) {
        const std::string text = chunk.bytes.substr(piece.begin, piece.end - piece.begin);
        EXPECT_TRUE(documents.empty() || piece.begins != open);
        if (piece.begins || documents.empty()) documents.emplace_back();
        documents.back() += text;
        open = !piece.ends;
      }
    }
    EXPECT_FALSE(open);
    return documents;
  }

  std::vector<std::string> read(const std::string& content, DocumentRule rule,
                                bool keep_newlines = false) const {
    return read({write("text", content)}, {.rule = rule, .keep_newlines = keep_newlines});
  }
};

TEST_F(Documents, AreFilesLinesOrRunsOfLines) {
  const std::string text = "one\r\ntwo \n\n \t\nthree\n";
  EXPECT_THAT(read(text, DocumentRule::file), ElementsAre(text));
  EXPECT_THAT(read(text, DocumentRule::line), ElementsAre("one", "two ", "", " \t", "three"));
  EXPECT_THAT(read(text, DocumentRule::line, true), ElementsAre("one\n", "two \n", "\n", " \t\n", "three\n"));
  EXPECT_THAT(read("one\r\n\r\nt\rwo\r", DocumentRule::line, true), ElementsAre("one\n", "\n", "t\rwo\n"));
  EXPECT_THAT(read(text, DocumentRule::blank_line), ElementsAre("one\r\ntwo ", "three"));
  EXPECT_THAT(read("\n\none", DocumentRule::blank_line), ElementsAre("one"));
  EXPECT_THAT(read("one\n\n\n", DocumentRule::blank_line), ElementsAre("one"));
  EXPECT_THAT(read("", DocumentRule::line), ElementsAre());
  EXPECT_THAT(read("one", DocumentRule::line, true), ElementsAre("one"));
}

TEST_F(Documents, AreInTheOrderOfTheFiles) {
  const std::vector<fs::path> files = {write("b", "one\ntwo\n"), write("empty", ""), write("a", "three")};
  EXPECT_THAT(read(files, {.rule = DocumentRule::line}), ElementsAre("one", "two", "three"));
  EXPECT_THAT(read(files, {}), ElementsAre("one\ntwo\n", "", "three"));
}

TEST_F(Documents, AByteOrderMarkIsNotText) {
  EXPECT_THAT(read("\xEF\xBB\xBFone", DocumentRule::file), ElementsAre("one"));
  EXPECT_THAT(read("\xEF\xBB\xBF{}\n", DocumentRule::line), ElementsAre("{}"));
}

// Texts whose documents are shorter and longer than a chunk.
std::string long_text(uint32_t seed) {
  std::mt19937 random(seed);
  std::string text;
  for (const size_t size : {10, 3'000'000, 0, 500'000, 900'000, 1'048'576, 20, 2'500'000}) {
    for (const size_t end = text.size() + size; text.size() < end;) {
      text += random() % 7 == 0 ? "\n" : "word";
      if (random() % 3 != 0) text += ' ';
    }
    text += random() % 2 == 0 ? "\n\n" : "\n \t\n";
  }
  return text;
}

TEST_F(Documents, AreReadInPartsIfLongerThanAChunk) {
  const std::string text = long_text(1);
  for (const DocumentRule rule : {DocumentRule::file, DocumentRule::line, DocumentRule::blank_line}) {
    const fs::path file = write("text", text);
    EXPECT_TRUE(read({file}, {.rule = rule}) == read({file}, {.rule = rule}, /*in_parts=*/false));
    DocumentReader reader({file}, {.rule = rule}, true);
    Chunk chunk;
    while (reader.next(chunk)) EXPECT_LE(chunk.bytes.size(), chunk_bytes);
  }
}

// Requires that reading from the end of each chunk gives the next one.
void require_continuations(const std::vector<fs::path>& files, const DocumentOptions& options,
                           size_t least_chunks) {
  std::vector<Chunk> chunks;
  DocumentReader whole(files, options, true);
  for (Chunk chunk; whole.next(chunk);) chunks.push_back(chunk);
  EXPECT_GE(chunks.size(), least_chunks);
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    DocumentReader rest(files, options, true, chunks[i].end);
    Chunk next;
    ASSERT_TRUE(rest.next(next));
    ASSERT_TRUE(next.bytes == chunks[i + 1].bytes);
    ASSERT_EQ(next.pieces.size(), chunks[i + 1].pieces.size());
    EXPECT_EQ(next.json, chunks[i + 1].json);
    EXPECT_EQ(next.pieces.front().begins, chunks[i + 1].pieces.front().begins);
    EXPECT_EQ(next.end.line, chunks[i + 1].end.line);
    EXPECT_EQ(next.file_bytes, chunks[i + 1].file_bytes);
  }
}

TEST_F(Documents, ReadingMayContinueAfterAnyChunk) {
  const std::vector<fs::path> files = {write("a", long_text(2)), write("b", long_text(3))};
  for (const DocumentRule rule : {DocumentRule::file, DocumentRule::line, DocumentRule::blank_line})
    require_continuations(files, {.rule = rule}, 11);
}

TEST_F(Documents, RowsOfParquetAreJsonLines) {
#ifndef STRETTO_HAS_ARROW
  GTEST_SKIP() << "this build has no Arrow C++ (scripts/setup.sh arrow)";
#endif
  const fs::path rows = fs::path(STRETTO_SOURCE_DIR) / "tests/golden/columnar/many.parquet";
  require_continuations({rows, write("a", "text"), rows}, {.rule = DocumentRule::line}, 5);
  DocumentReader reader({rows}, {}, true);
  Chunk chunk;
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_TRUE(chunk.json);
  EXPECT_TRUE(chunk.bytes.starts_with("{\"text\":\"text 0 of several")) << chunk.bytes.substr(0, 80);
}

TEST_F(Documents, HaveALimitUnlessTheyCanBeSplit) {
  const fs::path file = write("text", "one\n" + std::string(most_whole_bytes + 10, 'a'));
  EXPECT_THAT(message_of<DataError>([&] { read({file}, {.rule = DocumentRule::line}); }),
              has_all("text:2", "64 MiB", "space"));
  EXPECT_THAT(message_of<DataError>([&] { read({file}, {.rule = DocumentRule::file}, /*in_parts=*/false); }),
              has_all("text:1", "64 MiB", "whole"));
  fs::rename(file, path("text.jsonl"));
  EXPECT_THAT(message_of<DataError>([&] { read(std::vector<fs::path>{path("text.jsonl")}, {}); }),
              has_all("text.jsonl:2", "64 MiB", "line"));
}

TEST(JsonLines, AreFoundByTheirExtension) {
  for (const char* name : {"a.jsonl", "a.JSON", "a.ndjson.gz", "a.jsonl.zst"})
    EXPECT_TRUE(is_json_lines(name)) << name;
  for (const char* name : {"a.txt", "a.gz", "jsonl", "a.json.txt"}) EXPECT_FALSE(is_json_lines(name)) << name;
}

}  // namespace
}  // namespace stretto::token_corpus
