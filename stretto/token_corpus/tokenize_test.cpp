#include "stretto/token_corpus/tokenize.h"

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/message_support.h"
#include "stretto/text/byte_level.h"
#include "stretto/token_corpus/corpus_fixture.h"

namespace stretto::token_corpus {
namespace {

class Tokenize : public CorpusTest {
 protected:
  // Writes files of several chunks, with documents of many sizes. The options give several shards and saves.
  std::vector<fs::path> several_files() const {
    std::string lines;
    for (int i = 0; i < 3000; ++i)
      lines +=
          R"({"id": 1, "text": ")" + std::string(i % 7 == 0 ? "" : "a film\\n" + std::to_string(i)) + "\"}\n";
    return {write("a.txt", random_text(2'500'000, 1)), write("b.jsonl", lines),
            write("c.txt", random_text(1'200'000, 2))};
  }
  static TokenizeOptions small_shards() {
    return {.threads = 1, .tokens_per_shard = 300'001, .save_every = 500'000};
  }
};

TEST_F(Tokenize, WritesTheTokensOfEachDocument) {
  const std::vector<std::string> lines = {"A good film .", "", " the\tend", "caf\u00e9"};
  ASSERT_TRUE(tokenize_files({write("text", "A good film .\n\n the\tend\ncaf\u00e9")}, "corpus",
                             {.documents = {.rule = DocumentRule::line}}));
  EXPECT_EQ(documents_of("corpus"), encoded({lines[0], lines[2], lines[3]}));
  const Corpus corpus(path("corpus"));
  EXPECT_EQ(corpus.manifest().empty_documents, 1);
  EXPECT_EQ(corpus.manifest().text_bytes, 13 + 8 + 5);
  EXPECT_NO_THROW(corpus.check({}));
}

TEST_F(Tokenize, SpecialTokensAndTheEndOfDocumentsAreOptions) {
  const fs::path file = write("text", "film");
  const auto ids = [&](TokenizeOptions options) {
    options.overwrite = true;
    tokenize_files({file}, "corpus", options);
    return tokens_of("corpus");
  };
  const std::vector<int32_t> film = roberta().encode("film", {.special_tokens = false}).ids;
  const int32_t bos = *roberta().id("<s>"), eos = *roberta().id("</s>"), pad = *roberta().id("<pad>");
  const auto around = [&](std::vector<int32_t> before, const std::vector<int32_t>& after) {
    before.insert(before.end(), film.begin(), film.end());
    before.insert(before.end(), after.begin(), after.end());
    return before;
  };
  EXPECT_EQ(ids({}), around({bos}, {eos}));  // the template's </s> is the end already
  EXPECT_EQ(ids({.special_tokens = false}), around({}, {eos}));
  EXPECT_EQ(ids({.special_tokens = false, .eos = false}), film);
  EXPECT_EQ(ids({.eos_token = "<pad>"}), around({bos}, {eos, pad}));
  EXPECT_THAT(message_of<ConfigError>([&] {
                ids({.eos_token = "<none>", .names = {{"eos_token", "--eos"}}});
              }),
              has_all("--eos", "<none>"));
}

TEST_F(Tokenize, ATokenizerWithoutAnEndOfDocumentsNeedsOne) {
  const auto tokenizer = text::Tokenizer::load(golden("unigram"));
  const auto run = [&](const TokenizeOptions& options) {
    return tokenize({write("text", "a film")}, tokenizer, golden("unigram"), path("corpus"), options);
  };
  EXPECT_THAT(message_of<ConfigError>([&] {
                run({.names = {{"eos", "--no-eos"}, {"eos_token", "--eos"}}});
              }),
              has_all("eos_token", "--eos", "--no-eos"));
  EXPECT_TRUE(run({.eos = false}));
}

TEST_F(Tokenize, JsonLinesGiveTheTextOfAColumn) {
  const fs::path file = write("a.jsonl", R"({"body": "one\ntwo", "text": 3}
{"body": null}

{"body": "caf\u00e9 \ud83d\ude00"}
)");
  ASSERT_TRUE(tokenize_files({file}, "corpus", {.documents = {.column = "body"}}));
  EXPECT_EQ(documents_of("corpus"), encoded({"one\ntwo", "caf\u00e9 \U0001F600"}));
  const auto refused = [&](const std::string& line, const std::string& column, const auto& message) {
    const fs::path bad = write("bad.jsonl", "{\"text\": \"fine\", \"tags\": [\"a\"]}\n" + line + "\n");
    const TokenizeOptions options = {
        .documents = {.column = column}, .overwrite = true, .names = {{"column", "--column"}}};
    EXPECT_THAT(message_of<DataError>([&] { tokenize_files({bad}, "bad", options); }), message);
  };
  refused(R"({"texts": "x"})", "text", has_all("bad.jsonl:2", "\"text\"", "texts", "--column"));
  refused("{}", "txet", has_all("bad.jsonl:1", "\"txet\"", "did you mean \"text\""));
  refused("{}", "tags", has_all("bad.jsonl:1", "\"tags\"", "a list"));
  refused("[1]", "text", has_all("bad.jsonl:2", "array"));
  refused("{\"text\": \"x", "text", has_all("bad.jsonl:2"));
  refused("{\"text\": \"\xFF\"}", "text", has_all("bad.jsonl:2"));
}

TEST_F(Tokenize, ListsOfIdsAreTakenAsTheyAre) {
  const TokenizeOptions options = {.documents = {.column = "input_ids"}, .overwrite = true};
  const std::string rows = R"({"input_ids": [5, 6, 7], "labels": [5, 6, 7], "attention_mask": [1, 1, 1]}
{"input_ids": []}
{"input_ids": [8, 0, 0], "labels": [8, -100, 0], "attention_mask": [1, 0, 0]}
{"input_ids": [449]}
)";
  ASSERT_TRUE(tokenize_files({write("rows.jsonl", rows)}, "corpus", options));
  EXPECT_EQ(documents_of("corpus"), (std::vector<std::vector<int32_t>>{{5, 6, 7}, {8}, {449}}));
  EXPECT_EQ(Corpus(path("corpus")).manifest().empty_documents, 1);
  const auto refusal = [&](const std::string& row) -> std::string {
    try {
      tokenize_files({write("row.jsonl", "{\"input_ids\": [1]}\n" + row)}, "refused", options);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(R"({"input_ids": [1, 450]})"),
              has_all("row.jsonl:2: position 1 of \"input_ids\" is 450", "0 to 449"));
  EXPECT_THAT(refusal(R"({"input_ids": [1, -1]})"), has_all("position 1", "is -1"));
  EXPECT_THAT(refusal(R"({"input_ids": [1, 2.5]})"), has_all("position 1", "is 2.5"));
  EXPECT_THAT(refusal(R"({"input_ids": [1, 2], "labels": [-100, 2]})"),
              has_all("row.jsonl:2: position 0 of \"labels\" is -100", "1 in \"input_ids\""));
  EXPECT_THAT(refusal(R"({"input_ids": [1, 2], "attention_mask": [1]})"),
              has_all("\"attention_mask\" is no list of 2 numbers"));
  EXPECT_THAT(refusal(R"({"input_ids": ["a"]})"), has_all("is a list; expected a text, or a list of ids"));
}

TEST_F(Tokenize, AFolderOfASavedDataSetIsOneText) {
  EXPECT_THAT(text_files(write("text", "film")), testing::ElementsAre(path("text")));
  EXPECT_THAT(text_files(path("")), testing::ElementsAre(path("")));
#ifdef STRETTO_HAS_ARROW
  const fs::path blocks = fs::path(STRETTO_SOURCE_DIR) / "tests/golden/columnar/blocks";
  EXPECT_EQ(text_files(blocks).size(), 2u);
  const auto corpus = open_corpus(blocks, roberta(), golden("roberta"), path("cache"),
                                  {.documents = {.column = "input_ids"}});
  ASSERT_EQ(corpus->documents(), 6);
  ASSERT_EQ(corpus->tokens(), 48);
  std::vector<int32_t> ids;
  corpus->read(corpus->document_begin(5), corpus->tokens(), ids);
  EXPECT_THAT(ids, testing::ElementsAre(44, 45, 46, 47, 48, 49, 50, 51));
#endif
}

TEST_F(Tokenize, DocumentsLongerThanAChunkHaveTheTokensOfTheWhole) {
  const std::string text = random_text(4'000'000, 7);
  ASSERT_TRUE(tokenize_files({write("text", text)}, "corpus"));
  EXPECT_TRUE(documents_of("corpus") == encoded({text}));
}

// ---- law: the bytes are a function of files, tokenizer and options

TEST_F(Tokenize, AnyNumberOfThreadsWritesTheSameBytes) {
  const auto files = several_files();
  TokenizeOptions options = small_shards();
  ASSERT_TRUE(tokenize_files(files, "one", options));
  EXPECT_GT(Corpus(path("one")).manifest().shards.size(), 2);
  for (const int threads : {2, 3, 8}) {
    options.threads = threads;
    ASSERT_TRUE(tokenize_files(files, std::to_string(threads), options));
    EXPECT_TRUE(files_of(std::to_string(threads)) == files_of("one")) << threads;
  }
}

TEST_F(Tokenize, AStopAtAnyChunkDoesNotChangeTheBytesAfterResuming) {
  const auto files = several_files();
  TokenizeOptions options = small_shards();
  ASSERT_TRUE(tokenize_files(files, "whole", options));
  const auto expected = files_of("whole");
  for (const int threads : {1, 3}) {
    options.threads = threads;
    int stops = 0;
    for (bool done = false; !done; ++stops) {
      int chunks = 0;
      options.stop = [&] { return chunks++ == 1; };
      done = tokenize_files(files, "stopped", options);
      if (!done) {
        EXPECT_THROW(Corpus(path("stopped")), DataError);
      }
    }
    EXPECT_GE(stops, 5);
    EXPECT_TRUE(files_of("stopped") == expected);
    fs::remove_all(path("stopped"));
  }
}

// A full disk and a killed process, at each of the calls that write.
TEST_F(Tokenize, AFaultAtAnyWriteDoesNotChangeTheBytesAfterResuming) {
  const std::vector<fs::path> files = {write("a.txt", random_text(1'200'000, 1)),
                                       write("b.txt", random_text(9'000, 2))};
  const TokenizeOptions options = {.threads = 1, .tokens_per_shard = 150'001, .save_every = 1};
  ASSERT_TRUE(tokenize_files(files, "whole", options));
  const auto expected = files_of("whole");
  int faults = 0;
  for (int64_t call = 1;; call += 1 + call / 10) {
    SCOPED_TRACE(call);
    bool hit = false;
    {
      file_faults::Injection full({.call = call, .error = ENOSPC, .sticky = true, .path = "faulty"});
      try {
        tokenize_files(files, "faulty", options);
      } catch (const IoError& error) {
        EXPECT_THAT(error.what(), has_all("No space left"));
        hit = true;
      }
      ASSERT_EQ(hit, !full.hit().empty());
    }
    ASSERT_TRUE(tokenize_files(files, "faulty", options));
    ASSERT_TRUE(files_of("faulty") == expected);
    fs::remove_all(path("faulty"));
    if (!hit) break;
    ++faults;
  }
  EXPECT_GT(faults, 10);
}

TEST_F(Tokenize, BytesAfterAShortWriteAreRemoved) {
  const auto files = several_files();
  TokenizeOptions options = small_shards();
  ASSERT_TRUE(tokenize_files(files, "whole", options));
  int chunks = 0;
  options.stop = [&] { return chunks++ == 2; };
  ASSERT_FALSE(tokenize_files(files, "torn", options));
  const size_t shards = read_manifest(path("torn")).shards.size();
  for (const std::string& name : {shard_name(shards - 1), shard_name(shards), std::string(documents_name)})
    AppendFile(path("torn") / name).write(std::string(3'000'000, 'x'));
  options.stop = {};
  ASSERT_TRUE(tokenize_files(files, "torn", options));
  EXPECT_TRUE(files_of("torn") == files_of("whole"));
}

TEST_F(Tokenize, DocumentsWithoutTokensAreSkippedAlsoAfterResuming) {
  const auto tokenizer = text::Tokenizer::load(golden("uncased.txt"));
  const std::vector<fs::path> files = {write("a.txt", "the\n"), write("b.txt", " \nfilm\n \n")};
  int chunks = 0;
  const auto run = [&](const std::function<bool()>& stop) {
    const TokenizeOptions options = {.documents = {.rule = DocumentRule::line},
                                     .special_tokens = false,
                                     .eos = false,
                                     .threads = 1,
                                     .stop = stop};
    return tokenize(files, tokenizer, golden("uncased.txt"), path("corpus"), options);
  };
  ASSERT_FALSE(run([&] { return chunks++ == 1; }));
  ASSERT_TRUE(run({}));
  const Manifest manifest = read_manifest(path("corpus"));
  EXPECT_EQ(manifest.documents, 2);
  EXPECT_EQ(manifest.empty_documents, 2);
}

TEST_F(Tokenize, DamageToFilesOfAnInterruptedRunIsFound) {
  const auto files = several_files();
  TokenizeOptions options = small_shards();
  int chunks = 0;
  options.stop = [&] { return chunks++ == 1; };
  ASSERT_FALSE(tokenize_files(files, "corpus", options));
  const std::string name = shard_name(read_manifest(path("corpus")).shards.size() - 1);
  std::string bytes = read_file(path("corpus") / name);
  bytes[10] = static_cast<char>(~bytes[10]);
  write_file_atomic(path("corpus") / name, bytes);
  options.stop = {};
  EXPECT_THAT(message_of<DataError>([&] { tokenize_files(files, "corpus", options); }),
              has_all(name, "damaged", "begin again"));
}

TEST_F(Tokenize, AMistakeInADocumentKeepsEarlierOnesAndTheFileCanBeFixed) {
  const fs::path good = write("a.jsonl", "{\"text\": \"one\"}\n"), bad = write("b.jsonl", "{\"text\": 1}\n");
  EXPECT_THAT(message_of<DataError>([&] { tokenize_files({good, bad}, "corpus"); }), has_all("b.jsonl:1"));
  EXPECT_EQ(read_manifest(path("corpus")).documents, 1);
  write("b.jsonl", "{\"text\": \"two\"}\n");
  ASSERT_TRUE(tokenize_files({good, bad}, "corpus"));
  EXPECT_EQ(documents_of("corpus"), encoded({"one", "two"}));
}

// ---- existing contents of a folder

TEST_F(Tokenize, ACompleteCorpusIsUnchanged) {
  const fs::path file = write("text", "a film");
  ASSERT_TRUE(tokenize_files({file}, "corpus"));
  const file_faults::Injection count({.path = "corpus"});
  ASSERT_TRUE(tokenize_files({file}, "corpus"));
  EXPECT_EQ(count.calls(), 0);  // that write
  EXPECT_THAT(logged_, testing::HasSubstr("complete already"));
}

TEST_F(Tokenize, AnotherCorpusIsReplacedOnlyOnRequest) {
  const fs::path file = write("text", "a film");
  ASSERT_TRUE(tokenize_files({file}, "corpus"));
  const auto refused = [&](TokenizeOptions options, const auto& message) {
    options.names = {{"overwrite", "--overwrite"}};
    EXPECT_THAT(message_of<ConfigError>([&] { tokenize_files({file}, "corpus", options); }),
                testing::AllOf(message, has_all("--overwrite")));
  };
  refused({.documents = {.rule = DocumentRule::line}}, has_all("file", "line"));
  refused({.documents = {.column = "body"}}, has_all("text", "body"));
  refused({.special_tokens = false}, has_all("special tokens"));
  refused({.tokens_per_shard = 7}, has_all("shard", "7"));
  const auto other = text::Tokenizer::load(golden("unigram"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { tokenize({file}, other, golden("unigram"), path("corpus"), {.eos = false}); }),
              has_all("another tokenizer"));
  write("text", "another film");
  refused({}, has_all("text", "changed"));
  ASSERT_TRUE(tokenize_files({file}, "corpus", {.overwrite = true}));
  EXPECT_EQ(documents_of("corpus"), encoded({"another film"}));
}

TEST_F(Tokenize, FoldersWithoutACorpusAreUnchanged) {
  const fs::path file = write("text", "a film");
  make_folders(path("foreign"));
  write("foreign/thesis", "text");
  for (const bool overwrite : {false, true})
    EXPECT_THAT(message_of<ConfigError>([&] { tokenize_files({file}, "foreign", {.overwrite = overwrite}); }),
                has_all("foreign", "no corpus"));
  EXPECT_EQ(files_of("foreign").size(), 1);
}

TEST_F(Tokenize, TwoProcessesDoNotWriteOneCorpus) {
  const fs::path file = write("text", random_text(10'000, 1));
  TokenizeOptions options;
  std::string second;
  options.stop = [&] {
    try {
      tokenize_files({file}, "corpus");
    } catch (const ConfigError& error) {
      second = error.what();
    }
    return false;
  };
  ASSERT_TRUE(tokenize_files({file}, "corpus", options));
  EXPECT_THAT(second, has_all("another process", "corpus"));
}

// ---- bytes that are not UTF-8

TEST_F(Tokenize, BytesAreKeptIfTheTokenizerCan) {
  const std::string bytes = "a film \xFF\xFE of \xC3 1984\xE2\x82";
  ASSERT_TRUE(tokenize_files({write("text", bytes)}, "corpus", {.special_tokens = false, .eos = false}));
  std::string again;
  for (const int32_t id : tokens_of("corpus")) again += text::bytes_of_token(*roberta().token(id)).value();
  EXPECT_EQ(again, bytes);
}

TEST_F(Tokenize, OtherwiseBytesAreRefusedWithFileAndLine) {
  const auto tokenizer = text::Tokenizer::load(golden("uncased.txt"));
  const fs::path file = write("text", "a film\nof 1984\nby \xFF someone\n");
  for (const DocumentRule rule : {DocumentRule::file, DocumentRule::line}) {
    const TokenizeOptions options = {.documents = {.rule = rule}, .eos_token = "[SEP]", .overwrite = true};
    EXPECT_THAT(message_of<DataError>(
                    [&] { tokenize({file}, tokenizer, golden("uncased.txt"), path("corpus"), options); }),
                has_all("text:3", "0xff", "UTF-8"));
  }
  std::string lines;
  for (int i = 0; i < 200'000; ++i) lines += "the film\n";
  write("text", lines + "\xFF");
  const TokenizeOptions options = {.eos = false, .overwrite = true};
  EXPECT_THAT(message_of<DataError>(
                  [&] { tokenize({file}, tokenizer, golden("uncased.txt"), path("corpus"), options); }),
              has_all("text:200001"));
}

TEST_F(Tokenize, LargeVocabulariesHaveTokensOfFourBytes) {
  nlohmann::json json = nlohmann::json::parse(read_file(golden("word_level") / "tokenizer.json"));
  auto& vocabulary = json["model"]["vocab"];
  for (int id = static_cast<int>(vocabulary.size()); id < 70'000; ++id)
    vocabulary["w" + std::to_string(id)] = id;
  make_folders(path("large"));
  write("large/tokenizer.json", json.dump());
  const auto tokenizer = text::Tokenizer::load(path("large"));
  ASSERT_TRUE(tokenize({write("text", "w69999 w65536 w65535")}, tokenizer, path("large"), path("corpus"),
                       {.eos = false}));
  EXPECT_EQ(Corpus(path("corpus")).manifest().token_bytes(), 4);
  EXPECT_EQ(tokens_of("corpus"), tokenizer.encode("w69999 w65536 w65535").ids);
}

}  // namespace
}  // namespace stretto::token_corpus
