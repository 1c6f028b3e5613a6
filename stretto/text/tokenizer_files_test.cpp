#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/tokenizer_fixture.h"

// Files that are missing, malformed or hostile are refused with their place.
namespace stretto::text {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Tokenizer, FilesWithoutATokenizer) {
  const TempFolder folder;
  EXPECT_THAT(
      message_of<DataError>([&] { Tokenizer::load(folder.path()); }),
      has_all(
          folder.path().string() + ":",
          "tokenizer.json, vocab.txt, vocab.json with merges.txt, sentencepiece.bpe.model or tokenizer.model"));
  EXPECT_THAT(message_of<DataError>([&] { Tokenizer::load(folder.path() / "none"); }),
              has_all((folder.path() / "none").string() + ":", "no such file or folder", "tokenizer"));
}

// Loading a pipe fails instead of blocking.
TEST(Tokenizer, PipesAreRefusedByName) {
  const auto failure = [](const std::filesystem::path& path) {
    return message_of<IoError>([&] { Tokenizer::load(path); });
  };
  for (const char* name :
       {"tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model",
        "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "words.model", "words.txt"}) {
    const TempFolder folder;
    const std::filesystem::path pipe = folder.path() / name;
    const std::string text = name;
    if (text == "merges.txt") write_file_atomic(folder.path() / "vocab.json", "{}");
    if (text == "vocab.json") write_file_atomic(folder.path() / "merges.txt", "#version: 0.2\n");
    if (text.find('_') != std::string::npos) write_file_atomic(folder.path() / "vocab.txt", "[UNK]\n");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const bool is_alone = text.starts_with("words");
    EXPECT_THAT(failure(is_alone ? pipe : folder.path()),
                HasSubstr(pipe.string() + ": it is a pipe; expected a file"));
  }
}

TEST(Tokenizer, BadVocabularies) {
  EXPECT_THAT(vocabulary_error(""), HasSubstr("vocab.txt: empty"));
  EXPECT_THAT(vocabulary_error("[CLS]\n[SEP]\n"), has_all("vocab.txt:", "2 tokens", "\"[UNK]\""));
  EXPECT_THAT(vocabulary_error("[UNK]\na\xff\n"), HasSubstr("vocab.txt:2: not valid UTF-8"));
  EXPECT_THAT(vocabulary_error(uncased_vocabulary, "{\"do_lower_case\": 1}"),
              has_all("tokenizer_config.json: do_lower_case:", "true or false", "number 1"));
}

TEST(Tokenizer, BadTokenizerFiles) {
  const auto error_with = [](const char* pointer, const json& value) {
    json file = small_json();
    file[json::json_pointer(pointer)] = value;
    return json_error(file);
  };
  EXPECT_THAT(error_with("/model/type", "CharLevel"),
              has_all("tokenizer.json: model.type:", "CharLevel", "WordPiece, BPE, Unigram and WordLevel"));
  EXPECT_THAT(error_with("/model", json::parse(R"({"vocab": [["a", 0.5]], "unk_id": 0})")),
              HasSubstr("a Unigram"));
  EXPECT_THAT(error_with("/model/vocab/the", -3), HasSubstr("model.vocab: \"the\": -3 is not between"));
  EXPECT_THAT(error_with("/model/vocab/the", 4000000), HasSubstr("no error"));
  EXPECT_THAT(error_with("/model/vocab/the", 2000000000),
              has_all("tokenizer.json:", "2000000000", "\"the\""));
  EXPECT_THAT(error_with("/model/vocab/the", 1.5),
              has_all("tokenizer.json: model.vocab: \"the\":", "whole number", "1.5"));
  EXPECT_THAT(error_with("/model/vocab/the", 4), has_all("tokenizer.json:", "\"map\"", "\"the\"", "id 4"));
  EXPECT_THAT(error_with("/model/vocab", 7), has_all("tokenizer.json: model.vocab:", "object", "number 7"));
  EXPECT_THAT(error_with("/model/unk_token", "?"), has_all("tokenizer.json:", "unknown token", "\"?\""));
  EXPECT_THAT(error_with("/normalizer/type", "Nmt"),
              has_all("tokenizer.json: normalizer.type:", "\"Nmt\"", "BertNormalizer"));
  EXPECT_THAT(error_with("/pre_tokenizer/type", "Digits"),
              has_all("tokenizer.json: pre_tokenizer.type:", "\"Digits\"", "BertPreTokenizer"));
  EXPECT_THAT(error_with("/pre_tokenizer", nullptr),
              has_all("tokenizer.json: pre_tokenizer:", "missing", "BertPreTokenizer"));
  EXPECT_THAT(error_with("/post_processor/type", "Other"),
              has_all("tokenizer.json: post_processor.type:", "\"Other\"", "BertProcessing"));
  EXPECT_THAT(error_with("/post_processor/sep", json::array({"[SEP]"})),
              HasSubstr("post_processor.sep: expected at least 2 items"));
  EXPECT_THAT(error_with("/post_processor/sep/1", 6), has_all("tokenizer.json: post_processor:", "id 6"));
  EXPECT_THAT(error_with("/added_tokens/0/content", 1),
              has_all("tokenizer.json: added_tokens[0].content:", "string", "number 1"));
  EXPECT_THAT(json_error(json::object()), HasSubstr("lacks \"model\""));
  EXPECT_THAT(json_error(json::array()), has_all("tokenizer.json:", "object", "list"));
}

TEST(Tokenizer, BadTemplates) {
  const auto error_with = [](const char* single, const char* pair) {
    json file = small_json();
    file["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", json::parse(single)},
                              {"pair", json::parse(pair)},
                              {"special_tokens", json::object()}};
    return json_error(file);
  };
  EXPECT_THAT(error_with(R"([{"Sequence": {"id": "B", "type_id": 0}}])", "[]"),
              has_all("tokenizer.json: post_processor.single[0].Sequence:", "\"B\"", "expected \"A\""));
  const char* first = R"([{"Sequence": {"id": "A", "type_id": 0}}])";
  EXPECT_THAT(error_with(first, R"([{"Sequence": {"id": "C", "type_id": 0}}])"),
              has_all("post_processor.pair[0].Sequence:", "\"C\"", "\"A\" or \"B\""));
  EXPECT_THAT(error_with("[]", "[]"), has_all("post_processor.single:", "\"A\"", "0 times"));
  EXPECT_THAT(error_with(first, first), has_all("post_processor.pair:", "\"B\"", "0 times"));
  EXPECT_THAT(error_with(R"([{"SpecialToken": {"id": "[X]", "type_id": 0}}])", "[]"),
              has_all("tokenizer.json: post_processor.special_tokens:", "\"[X]\""));
}

TEST(Tokenizer, BadCharsmaps) {
  json file = json::parse(R"({
    "normalizer": {"type": "Precompiled", "precompiled_charsmap": ""},
    "pre_tokenizer": {"type": "Metaspace"},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]]}
  })");
  for (const char* text :
       {"AAAA*", "AAAAA", " AAA", "\tAAAA===", "AAA\n", "AAA-", "=AAA", "A=AA", "AA=A", "A===", "===="}) {
    file["normalizer"]["precompiled_charsmap"] = text;
    EXPECT_THAT(json_error(file), has_all("tokenizer.json: normalizer.precompiled_charsmap:", "base 64"))
        << text;
  }
  for (const auto& [text, bytes] :
       std::vector<std::pair<const char*, int>>{{"/////w==", 4}, {"//////8=", 5}, {"////////", 6}}) {
    file["normalizer"]["precompiled_charsmap"] = text;  // all bits are set
    EXPECT_THAT(json_error(file), has_all("4294967295 bytes", fmt::format("in {} bytes", bytes)));
  }
  file["normalizer"] = nullptr;
  EXPECT_EQ(json_error(file), "no error");
  file["model"]["vocab"][1] = json::array({"a"});
  EXPECT_THAT(json_error(file), has_all("tokenizer.json: model.vocab[1]:", "found 1"));
  file["model"]["vocab"][1] = json::array({"a", "b"});
  EXPECT_THAT(json_error(file), has_all("tokenizer.json: model.vocab[1][1]:", "number", "string"));
  file["model"]["vocab"][1] = json::array({"a", -1});
  file["model"]["unk_id"] = 9;
  EXPECT_THAT(json_error(file), has_all("tokenizer.json:", "unknown token", "id 9", "2 tokens"));
  file["model"].erase("unk_id");
  EXPECT_THAT(message_of<DataError>([&] { load_json(file).encode("b"); }),
              has_all("tokenizer.json:", "b\"", "unk_id"));
}

TEST(Tokenizer, BadSentencePieceFiles) {
  const TempFolder folder;
  const auto load_error = [&](const std::string& content) {
    write_file_atomic(folder.path() / "a.model", content);
    return message_of<DataError>([&] { Tokenizer::load(folder.path() / "a.model"); });
  };
  EXPECT_THAT(load_error(""), has_all("a.model:", "SentencePiece", "no pieces"));
  EXPECT_THAT(load_error("text"), HasSubstr("a.model: not a SentencePiece model"));
  EXPECT_THAT(load_error("IQ== 0\nIg== 1\n"),
              has_all("a.model:", "as tiktoken reads them", "tokenizer.json"));
  const std::string good = read_file(std::filesystem::path(STRETTO_SOURCE_DIR) /
                                     "tests/golden/tokenizer/xlm_roberta/sentencepiece.bpe.model");
  EXPECT_EQ(load_error(good), "no error");
  EXPECT_THAT(load_error(good.substr(0, good.size() / 2)), HasSubstr("a.model: not a SentencePiece model"));
  // trainer_spec.model_type = 3, and 2
  EXPECT_THAT(load_error(good + std::string("\x12\x02\x18\x03", 4)),
              has_all("a.model:", "word", "unigram and BPE"));
  EXPECT_THAT(load_error(good + std::string("\x12\x02\x18\x02", 4)),
              has_all("a.model:", "BPE with a normalizer"));
  write_file_atomic(folder.path() / "tokenizer.model", good);
  EXPECT_THAT(message_of<DataError>([&] { Tokenizer::load(folder.path()); }),
              has_all("tokenizer.model:", "unigram", "expected BPE"));
  std::filesystem::rename(folder.path() / "tokenizer.model", folder.path() / "sentencepiece.bpe.model");
  write_file_atomic(folder.path() / "sentencepiece.bpe.model",
                    read_file(std::filesystem::path(STRETTO_SOURCE_DIR) /
                              "tests/golden/tokenizer/llama2_model/tokenizer.model"));
  EXPECT_THAT(message_of<DataError>([&] { Tokenizer::load(folder.path()); }),
              has_all("sentencepiece.bpe.model:", "BPE", "expected unigram"));
}

TEST(Tokenizer, HostileFiles) {
  const std::string huge(1 << 20, 'x');
  json file = small_json();
  file["model"]["vocab"][huge] = 6;
  EXPECT_THAT(json_error(file), has_all("tokenizer.json:", "id 6", "1048576 bytes", "4096"));
  file = small_json();
  file["added_tokens"][0]["content"] = huge;
  EXPECT_THAT(json_error(file), has_all("tokenizer.json: added_tokens[0].content:", "1048576 bytes"));
  const auto error_of_text = [](const std::string& text) {
    const TempFolder folder;
    write_file_atomic(folder.path() / "tokenizer.json", text);
    return message_of<DataError>([&] { Tokenizer::load(folder.path()); });
  };
  EXPECT_THAT(error_of_text("{\"model\":" + std::string(1 << 20, '[')),
              has_all("tokenizer.json:1:", "64 levels"));
  EXPECT_THAT(error_of_text("{\n \"model\": {\"vocab\": {\"a\xff\": 1}}}"),
              HasSubstr("tokenizer.json:2:24: not valid"));
  EXPECT_THAT(error_of_text(""), HasSubstr("tokenizer.json:1:1: not valid JSON"));
}

}  // namespace
}  // namespace stretto::text
