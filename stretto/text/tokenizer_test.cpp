#include "stretto/text/tokenizer.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/copy_tokenizer.h"

namespace stretto::text {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* uncased_vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nmap\n##s\ncafe\n";
constexpr const char* cased_vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nThe\nmap\n##s\n";

json small_json() {
  return json::parse(R"({
    "truncation": {"max_length": 3}, "padding": {"strategy": "BatchLongest"},
    "added_tokens": [{"id": 1, "content": "[SEP]", "special": true, "normalized": false}],
    "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 2]},
    "model": {"type": "WordPiece", "unk_token": "[UNK]",
              "vocab": {"[UNK]": 0, "[SEP]": 1, "[CLS]": 2, "the": 3, "map": 4, "##s": 5}}
  })");
}

// The tokenizer loaded from a folder with these files; empty content: without the file.
Tokenizer load_vocabulary(const std::string& vocabulary, const std::string& config = "",
                          const TokenizerOptions& options = {}) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "vocab.txt", vocabulary);
  if (!config.empty()) write_file_atomic(folder.path() / "tokenizer_config.json", config);
  return Tokenizer::load(folder.path(), options);
}

Tokenizer load_json(const json& file, const TokenizerOptions& options = {}) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", file.dump());
  return Tokenizer::load(folder.path(), options);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

std::string vocabulary_error(const std::string& vocabulary, const std::string& config = "") {
  return error_of([&] { load_vocabulary(vocabulary, config); });
}

std::string json_error(const json& file) {
  return error_of([&] { load_json(file); });
}

TEST(Tokenizer, VocabularyDecidesCase) {
  EXPECT_TRUE(load_vocabulary(uncased_vocabulary).lowercase());
  EXPECT_FALSE(load_vocabulary(cased_vocabulary).lowercase());
  // A capital letter without a lower-case form is not evidence.
  EXPECT_TRUE(load_vocabulary(std::string(uncased_vocabulary) + "\u211d\n").lowercase());
  EXPECT_FALSE(load_vocabulary(std::string(uncased_vocabulary) + "\u0414\u0430\n").lowercase());
}

TEST(Tokenizer, TheChoiceOfCaseIsSaid) {
  testing::internal::CaptureStderr();
  load_vocabulary(cased_vocabulary);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("taken as cased"));
  testing::internal::CaptureStderr();
  load_vocabulary(cased_vocabulary, R"({"do_lower_case": true})");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Tokenizer, ConfigurationAndOptionOverrideTheVocabulary) {
  EXPECT_TRUE(load_vocabulary(cased_vocabulary, R"({"do_lower_case": true})").lowercase());
  EXPECT_FALSE(
      load_vocabulary(cased_vocabulary, R"({"do_lower_case": true})", {.lowercase = false}).lowercase());
  EXPECT_FALSE(load_json(small_json(), {.lowercase = false}).lowercase());
  EXPECT_THAT(load_vocabulary(uncased_vocabulary).encode("caf\u00e9").ids, ElementsAre(2, 8, 3));
  EXPECT_THAT(load_vocabulary(uncased_vocabulary, R"({"strip_accents": false})").encode("caf\u00e9").ids,
              ElementsAre(2, 1, 3));
}

// Settings that transformers reads from both files.
TEST(Tokenizer, ConfigurationOverridesTokenizerJson) {
  const auto load = [](const char* config, const TokenizerOptions& options = {}) {
    const TempFolder folder;
    json file = small_json();
    file["model"]["vocab"]["cafe"] = 6;
    file["model"]["vocab"]["Caf\u00e9"] = 7;
    write_file_atomic(folder.path() / "tokenizer.json", file.dump());
    write_file_atomic(folder.path() / "tokenizer_config.json", config);
    return Tokenizer::load(folder.path(), options).encode("Caf\u00e9", {.special_tokens = false}).ids;
  };
  EXPECT_THAT(load(R"({"do_lower_case": true, "strip_accents": null})"), ElementsAre(6));
  EXPECT_THAT(load(R"({"strip_accents": false})"), ElementsAre(0));
  testing::internal::CaptureStderr();
  EXPECT_THAT(load(R"({"do_lower_case": false})"), ElementsAre(7));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("tokenizer.json: normalizer.lowercase: true is overridden by "));
  EXPECT_THAT(load(R"({"do_lower_case": false})", {.lowercase = true}), ElementsAre(6));
}

TEST(Tokenizer, ConfigurationNamesSpecialTokens) {
  const std::string vocabulary = "<unk>\n<s>\n</s>\nthe\n";
  EXPECT_THAT(vocabulary_error(vocabulary), HasSubstr("vocab.txt: lacks \"[CLS]\"; name the special tokens"));
  const std::string config =
      R"({"do_lower_case": true, "unk_token": "<unk>", "cls_token": {"content": "<s>"}, "sep_token": "</s>"})";
  EXPECT_THAT(load_vocabulary(vocabulary, config).encode("the </s> x").ids, ElementsAre(1, 3, 2, 0, 2));
}

TEST(Tokenizer, EarlyFoldersNameSpecialTokensInAMap) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "vocab.txt", "<unk>\n<s>\n</s>\n<pad>\n<mask>\nthe\n");
  write_file_atomic(folder.path() / "special_tokens_map.json",
                    R"({"unk_token": "<unk>", "cls_token": {"content": "<s>"}, "sep_token": "[SEP]"})");
  const auto load_error = [&] { return error_of([&] { Tokenizer::load(folder.path()); }); };
  EXPECT_THAT(load_error(), HasSubstr("lacks \"[SEP]\""));
  // A tokenizer_config.json comes first.
  write_file_atomic(folder.path() / "tokenizer_config.json",
                    R"({"sep_token": "</s>", "do_lower_case": true})");
  EXPECT_THAT(Tokenizer::load(folder.path()).encode("The x").ids, ElementsAre(1, 5, 0, 2));
  write_file_atomic(folder.path() / "special_tokens_map.json", "[]");
  EXPECT_THAT(load_error(), HasSubstr("special_tokens_map.json: expected an object"));
}

TEST(Tokenizer, TheTruncationSideOfTheFileIsTheDefault) {
  json file = small_json();
  file["truncation"] = {
      {"direction", "Left"}, {"max_length", 3}, {"strategy", "LongestFirst"}, {"stride", 0}};
  EXPECT_THAT(load_json(file).encode("the map", {.max_length = 3}).ids, ElementsAre(2, 4, 1));
  file["truncation"]["direction"] = "Up";
  EXPECT_THAT(json_error(file),
              HasSubstr("truncation.direction: expected \"left\" or \"right\", found \"Up\""));
}

// As in transformers; the lengths are there for callers that want them.
TEST(Tokenizer, TheLengthsOfTheFileAreNotApplied) {
  json file = small_json();
  file["truncation"] = {{"direction", "Left"}, {"max_length", 4}, {"strategy", "OnlyFirst"}, {"stride", 1}};
  file["padding"] = {{"strategy", {{"Fixed", 9}}}, {"pad_id", 0}};
  const Tokenizer tokenizer = load_json(file);
  EXPECT_THAT(tokenizer.encode("the map the").ids, ElementsAre(2, 3, 4, 3, 1));
  const SavedLengths& saved = tokenizer.saved_lengths();
  EXPECT_EQ(saved.padding, 9);
  ASSERT_TRUE(saved.truncation);
  EXPECT_EQ(saved.truncation->truncation, Truncation::only_first);
  EXPECT_EQ(saved.truncation->stride, 1);
  EXPECT_THAT(tokenizer.encode("the map the", *saved.truncation).ids, ElementsAre(2, 4, 3, 1));
  EXPECT_FALSE(load_json(small_json()).saved_lengths().padding);
  file["truncation"]["strategy"] = "Middle";
  EXPECT_THAT(json_error(file),
              HasSubstr("truncation.strategy: expected LongestFirst, OnlyFirst or OnlySecond, found"));
  file["truncation"] = {{"max_length", -1}};
  EXPECT_THAT(json_error(file), HasSubstr("truncation.max_length: expected a number of tokens"));
  file["truncation"] = {{"max_length", "long"}};
  EXPECT_THAT(json_error(file), HasSubstr("truncation.max_length: expected"));
  file = small_json();
  file["padding"] = {{"pad_id", -1}};
  EXPECT_THAT(json_error(file), HasSubstr("padding.pad_id"));
}

TEST(Tokenizer, TruncationInTheFileIsIgnored) {
  EXPECT_THAT(load_json(small_json()).encode("the maps the maps").ids, ElementsAre(2, 3, 4, 5, 3, 4, 5, 1));
}

TEST(Tokenizer, TokensAndIdsNameEachOther) {
  const Tokenizer tokenizer = load_json(small_json());
  EXPECT_EQ(tokenizer.token(5), "##s");
  EXPECT_EQ(tokenizer.id("##s"), 5);
  EXPECT_EQ(tokenizer.token(6), std::nullopt);
  EXPECT_EQ(tokenizer.token(-1), std::nullopt);
  EXPECT_EQ(tokenizer.id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer.vocab_size(), 6);
}

TEST(Tokenizer, AddedTokensBeyondTheVocabularyGetTheNextIds) {
  json file = small_json();
  file["added_tokens"].push_back({{"id", 77}, {"content", "<x>"}, {"normalized", false}});
  testing::internal::CaptureStderr();
  const Tokenizer tokenizer = load_json(file);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("\"<x>\" has the id 6"));
  EXPECT_THAT(tokenizer.encode("the<x>", {.special_tokens = false}).ids, ElementsAre(3, 6));
  EXPECT_EQ(tokenizer.token(6), "<x>");
  EXPECT_EQ(tokenizer.vocab_size(), 7);
}

TEST(Tokenizer, FingerprintFollowsBehaviour) {
  const std::string base = load_json(small_json()).fingerprint();
  EXPECT_EQ(load_json(small_json()).fingerprint(), base);
  EXPECT_NE(load_json(small_json(), {.lowercase = false}).fingerprint(), base);
  json file = small_json();
  file["added_tokens"][0]["lstrip"] = true;
  EXPECT_NE(load_json(file).fingerprint(), base);
}

TEST(Tokenizer, TooSmallAMaximumLengthIsRefused) {
  const Tokenizer tokenizer = load_json(small_json());
  EXPECT_EQ(tokenizer.encode("the map", {.max_length = 2}).size(), 2);
  try {
    tokenizer.encode("the map", {.max_length = 1});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a maximum length of 1 leaves no room for the 2 special tokens"));
  }
}

TEST(Tokenizer, FilesWithoutATokenizer) {
  const TempFolder folder;
  EXPECT_THAT(
      [&] { Tokenizer::load(folder.path()); },
      testing::ThrowsMessage<DataError>(HasSubstr(
          "expected tokenizer.json, vocab.txt, vocab.json with merges.txt or sentencepiece.bpe.model")));
  EXPECT_THAT([&] { Tokenizer::load(folder.path() / "none"); },
              testing::ThrowsMessage<DataError>(HasSubstr("none: no such file or folder")));
}

// Nothing waits for what would be written into a pipe.
TEST(Tokenizer, PipesAreRefusedByName) {
  const auto failure = [](const std::filesystem::path& path) -> std::string {
    try {
      Tokenizer::load(path);
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  };
  for (const char* name :
       {"tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model",
        "tokenizer_config.json", "special_tokens_map.json", "words.model", "words.txt"}) {
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
  EXPECT_THAT(vocabulary_error("[CLS]\n[SEP]\n"), HasSubstr("lacks its unknown token \"[UNK]\""));
  EXPECT_THAT(vocabulary_error("[UNK]\na\xff\n"), HasSubstr("vocab.txt:2: not valid UTF-8"));
  EXPECT_THAT(vocabulary_error(uncased_vocabulary, "{\"do_lower_case\": 1}"),
              HasSubstr("tokenizer_config.json: do_lower_case: expected true or false, found the number 1"));
}

TEST(Tokenizer, BadTokenizerFiles) {
  const auto error_with = [](const char* pointer, const json& value) {
    json file = small_json();
    file[json::json_pointer(pointer)] = value;
    return json_error(file);
  };
  EXPECT_THAT(error_with("/model/type", "CharLevel"),
              HasSubstr("model.type: a CharLevel tokenizer is not available; available are WordPiece"));
  EXPECT_THAT(error_with("/model", json::parse(R"({"vocab": [["a", 0.5]], "unk_id": 0})")),
              HasSubstr("a Unigram"));
  EXPECT_THAT(error_with("/model/vocab/the", -3), HasSubstr("model.vocab: \"the\": -3 is not between"));
  EXPECT_THAT(error_with("/model/vocab/the", 4000000), HasSubstr("no error"));
  EXPECT_THAT(error_with("/model/vocab/the", 2000000000), HasSubstr("the id 2000000000 of token \"the\""));
  EXPECT_THAT(error_with("/model/vocab/the", 1.5),
              HasSubstr("expected a whole number, found the number 1.5"));
  EXPECT_THAT(error_with("/model/vocab/the", 4),
              HasSubstr("tokenizer.json: the tokens \"map\" and \"the\" have the same id 4"));
  EXPECT_THAT(error_with("/model/vocab", 7),
              HasSubstr("model.vocab: expected an object, found the number 7"));
  EXPECT_THAT(error_with("/model/unk_token", "?"), HasSubstr("lacks its unknown token \"?\""));
  EXPECT_THAT(error_with("/normalizer/type", "Nmt"), HasSubstr("normalizer.type: \"Nmt\" is not available"));
  EXPECT_THAT(error_with("/pre_tokenizer/type", "Digits"),
              HasSubstr("pre_tokenizer.type: \"Digits\" is not available; available are BertPreTokenizer"));
  EXPECT_THAT(error_with("/pre_tokenizer", nullptr), HasSubstr("pre_tokenizer: none is not available"));
  EXPECT_THAT(error_with("/post_processor/type", "Other"),
              HasSubstr("post_processor.type: \"Other\" is not available; available are BertProcessing"));
  EXPECT_THAT(error_with("/post_processor/sep", json::array({"[SEP]"})),
              HasSubstr("post_processor.sep: expected more"));
  EXPECT_THAT(error_with("/post_processor/sep/1", 6),
              HasSubstr("post_processor: adds a token with the id 6, which the vocabulary lacks"));
  EXPECT_THAT(error_with("/added_tokens/0/content", 1),
              HasSubstr("added_tokens[0].content: expected a string"));
  EXPECT_THAT(json_error(json::object()), HasSubstr("lacks \"model\""));
  EXPECT_THAT(json_error(json::array()), HasSubstr("expected an object, found list"));
}

// The files of a small RoBERTa: "ab" and " ab" are words, "é" is two bytes.
json small_bpe() {
  return json::parse(R"({
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": true,
                       "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b", "Ġ ab", "Ã ©"],
              "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "Ġ": 4, "Ã": 5, "©": 6, "ab": 7, "Ġab": 8, "Ã©": 9}}
  })");
}

TEST(Tokenizer, ByteLevelBpeMergesTheFirstRuleFirst) {
  const Tokenizer tokenizer = load_json(small_bpe());
  EXPECT_THAT(tokenizer.encode("ab abab\u00e9").ids, ElementsAre(0, 7, 8, 7, 9, 1));
  EXPECT_THAT(tokenizer.encode("bab", {.special_tokens = false}).ids, ElementsAre(3, 7));
  EXPECT_EQ(tokenizer.cls_id(), 0);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab \u00e9", {.special_tokens = false}).ids), "ab \u00e9");
  const std::string half = tokenizer.decode(std::vector<int32_t>{5});
  EXPECT_EQ(half, "\ufffd");
}

TEST(Tokenizer, BytesThatTheVocabularyLacksGiveNoToken) {
  const Encoding encoding = load_json(small_bpe()).encode("ab?ab", {.special_tokens = false});
  EXPECT_THAT(encoding.ids, ElementsAre(7, 7));
  EXPECT_EQ(encoding.offsets[1], (Offset{3, 5}));
  json file = small_bpe();
  file["model"]["unk_token"] = "</s>";
  EXPECT_THAT(load_json(file).encode("ab??", {.special_tokens = false}).ids, ElementsAre(7, 1, 1));
  file["model"]["fuse_unk"] = true;
  EXPECT_THAT(load_json(file).encode("ab??", {.special_tokens = false}).ids, ElementsAre(7, 1));
}

TEST(Tokenizer, PrefixSpaceIsAnOption) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", small_bpe().dump());
  const auto ids = [&](const TokenizerOptions& options) {
    return Tokenizer::load(folder.path(), options).encode("ab", {.special_tokens = false}).ids;
  };
  EXPECT_THAT(ids({}), ElementsAre(7));
  EXPECT_THAT(ids({.add_prefix_space = true}), ElementsAre(8));
  write_file_atomic(folder.path() / "tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_THAT(ids({}), ElementsAre(8));
  EXPECT_THAT(ids({.add_prefix_space = false}), ElementsAre(7));
}

TEST(Tokenizer, TruncationSideIsConfigured) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", small_bpe().dump());
  write_file_atomic(folder.path() / "tokenizer_config.json", R"({"truncation_side": "left"})");
  EXPECT_THAT(Tokenizer::load(folder.path()).encode("abb", {.max_length = 3}).ids, ElementsAre(0, 3, 1));
  write_file_atomic(folder.path() / "tokenizer_config.json", R"({"truncation_side": "top"})");
  EXPECT_THAT(
      error_of([&] { Tokenizer::load(folder.path()); }),
      HasSubstr("tokenizer_config.json: truncation_side: expected \"left\" or \"right\", found \"top\""));
}

TEST(Tokenizer, CopiesAreTheSameTokenizer) {
  const std::filesystem::path golden = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/tokenizer";
  const auto copy = [](const std::filesystem::path& source) {
    const TempFolder folder;
    copy_tokenizer(source, true, folder.path());
    EXPECT_EQ(Tokenizer::load(folder.path()).fingerprint(), Tokenizer::load(source).fingerprint());
    const json config = json::parse(read_file(folder.path() / "tokenizer_config.json"));
    return config["tokenizer_class"].get<std::string>();
  };
  EXPECT_EQ(copy(golden / "roberta"), "RobertaTokenizer");
  EXPECT_EQ(copy(golden / "roberta/vocab.json"), "RobertaTokenizer");
  EXPECT_EQ(copy(golden / "xlm_roberta"), "XLMRobertaTokenizer");
  EXPECT_EQ(copy(golden / "unigram"), "PreTrainedTokenizerFast");
}

TEST(Tokenizer, BadByteLevelFiles) {
  const auto error_with = [](const char* pointer, const json& value) {
    json file = small_bpe();
    file[json::json_pointer(pointer)] = value;
    return json_error(file);
  };
  EXPECT_THAT(error_with("/model/merges/1", "Ġ x"),
              HasSubstr("tokenizer.json: merge rule 2, \"Ġ x\": the vocabulary lacks \"x\""));
  EXPECT_THAT(error_with("/model/merges/1", json::array({"b", "a"})),
              HasSubstr("the vocabulary lacks \"ba\""));
  EXPECT_THAT(error_with("/model/merges/1", "ab"), HasSubstr("model.merges[1]: expected two tokens"));
  EXPECT_THAT(error_with("/model/dropout", 0.1), HasSubstr("model.dropout: this setting is not available"));
  EXPECT_THAT(error_with("/pre_tokenizer/use_regex", false),
              HasSubstr("pre_tokenizer.use_regex: false is not"));
  EXPECT_THAT(
      error_with("/pre_tokenizer/type", "BertPreTokenizer"),
      HasSubstr("pre_tokenizer: a BPE model with BertPreTokenizer is not available; available is ByteLevel"));
  EXPECT_THAT(
      error_with("/pre_tokenizer", json::parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Split"},
                         {"type": "ByteLevel"}]})")),
      HasSubstr("\"Sequence of Split, ByteLevel\" is not available"));
  json file = small_bpe();
  file["decoder"]["type"] = "CTC";
  const Tokenizer tokenizer = load_json(file);
  EXPECT_THAT(error_of([&] { (void)tokenizer.decode(std::vector<int32_t>{7}); }),
              HasSubstr("decoder.type: \"CTC\" is not available, so ids cannot be turned into text"));
}

TEST(Tokenizer, VocabularyAndMergesAreFiles) {
  const TempFolder folder;
  const auto write = [&](const char* name, const std::string& content) {
    write_file_atomic(folder.path() / name, content);
  };
  const auto load_error = [&] { return error_of([&] { Tokenizer::load(folder.path()); }); };
  write("vocab.json", small_bpe()["model"]["vocab"].dump());
  EXPECT_THAT(load_error(), HasSubstr("vocab.json: there is no merges.txt beside it"));
  write("merges.txt", "#version: 0.2\na b\r\n\nĠ ab\nÃ ©\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_error(), "no error");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("taken as RoBERTa's or BART's"));
  write("merges.txt", "a b\na b c\n");
  EXPECT_THAT(load_error(), HasSubstr("merges.txt:2: found \"a b c\"; expected two tokens with a space"));
  write("merges.txt", "a \xff\n");
  EXPECT_THAT(load_error(), HasSubstr("merges.txt:1: not valid UTF-8"));
  write("merges.txt", "a b\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  EXPECT_THAT(load_error(), HasSubstr("tokenizer_class: \"CLIPTokenizer\" is not available from vocab.json"));
  std::filesystem::remove(folder.path() / "tokenizer_config.json");
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  EXPECT_THAT(load_error(), HasSubstr("vocab.json: lacks <|endoftext|> (GPT-2) and <s>, </s>"));
}

TEST(Tokenizer, BadSentencePieceFiles) {
  const TempFolder folder;
  const auto load_error = [&](const std::string& content) {
    write_file_atomic(folder.path() / "a.model", content);
    return error_of([&] { Tokenizer::load(folder.path() / "a.model"); });
  };
  EXPECT_THAT(load_error(""), HasSubstr("a.model: not a SentencePiece model: it holds no pieces"));
  EXPECT_THAT(load_error("text"), HasSubstr("a.model: not a SentencePiece model"));
  const std::string good = read_file(std::filesystem::path(STRETTO_SOURCE_DIR) /
                                     "tests/golden/tokenizer/xlm_roberta/sentencepiece.bpe.model");
  EXPECT_EQ(load_error(good), "no error");
  EXPECT_THAT(load_error(good.substr(0, good.size() / 2)), HasSubstr("a.model: not a SentencePiece model"));
  // trainer_spec.model_type = 2
  EXPECT_THAT(load_error(good + std::string("\x12\x02\x18\x02", 4)),
              HasSubstr("a SentencePiece model of type BPE is not available; available is unigram"));
}

TEST(Tokenizer, BadCharsmaps) {
  json file = json::parse(R"({
    "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA*"},
    "pre_tokenizer": {"type": "Metaspace"},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]]}
  })");
  EXPECT_THAT(json_error(file), HasSubstr("normalizer.precompiled_charsmap: expected base 64"));
  file["normalizer"]["precompiled_charsmap"] = "/////w==";
  EXPECT_THAT(json_error(file),
              HasSubstr("not a precompiled charsmap: a trie of 4294967295 bytes in 4 bytes"));
  file["normalizer"] = nullptr;
  EXPECT_EQ(json_error(file), "no error");
  file["model"]["vocab"][1] = json::array({"a"});
  EXPECT_THAT(json_error(file), HasSubstr("model.vocab[1]: expected more than 1 items"));
  file["model"]["vocab"][1] = json::array({"a", "b"});
  EXPECT_THAT(json_error(file), HasSubstr("model.vocab[1][1]: expected a number"));
  file["model"]["vocab"][1] = json::array({"a", -1});
  file["model"]["unk_id"] = 9;
  EXPECT_THAT(json_error(file), HasSubstr("the unknown token's id 9 is not among the 2 tokens"));
  file["model"].erase("unk_id");
  EXPECT_THAT(error_of([&] { load_json(file).encode("b"); }),
              HasSubstr("cannot be made of the vocabulary's tokens"));
}

TEST(Tokenizer, HostileFiles) {
  const std::string huge(1 << 20, 'x');
  json file = small_json();
  file["model"]["vocab"][huge] = 6;
  EXPECT_THAT(json_error(file),
              HasSubstr("the token with the id 6 has 1048576 bytes; expected at most 4096"));
  file = small_json();
  file["added_tokens"][0]["content"] = huge;
  EXPECT_THAT(json_error(file), HasSubstr("added_tokens[0].content: a token of 1048576 bytes"));
  const auto error_of_text = [](const std::string& text) {
    const TempFolder folder;
    write_file_atomic(folder.path() / "tokenizer.json", text);
    return error_of([&] { Tokenizer::load(folder.path()); });
  };
  EXPECT_THAT(error_of_text("{\"model\":" + std::string(1 << 20, '[')),
              HasSubstr("tokenizer.json:1: JSON is nested deeper than 64 levels"));
  EXPECT_THAT(error_of_text("{\n \"model\": {\"vocab\": {\"a\xff\": 1}}}"),
              HasSubstr("tokenizer.json:2:24: not valid"));
  EXPECT_THAT(error_of_text(""), HasSubstr("tokenizer.json:1:1: not valid JSON"));
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
  EXPECT_THAT(
      error_with(R"([{"Sequence": {"id": "B", "type_id": 0}}])", "[]"),
      HasSubstr("post_processor.single[0].Sequence: there is no sequence \"B\" here; expected \"A\""));
  const char* first = R"([{"Sequence": {"id": "A", "type_id": 0}}])";
  EXPECT_THAT(error_with(first, R"([{"Sequence": {"id": "C", "type_id": 0}}])"),
              HasSubstr("expected \"A\" or \"B\""));
  EXPECT_THAT(error_with("[]", "[]"),
              HasSubstr("post_processor.single: expected the sequence \"A\" once, found it 0 times"));
  EXPECT_THAT(error_with(first, first),
              HasSubstr("post_processor.pair: expected the sequence \"B\" once, found it 0 times"));
  EXPECT_THAT(error_with(R"([{"SpecialToken": {"id": "[X]", "type_id": 0}}])", "[]"),
              HasSubstr("post_processor.special_tokens: lacks \"[X]\""));
}

}  // namespace
}  // namespace stretto::text
