#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/text/tokenizer_parts.h"

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

TEST(Tokenizer, TheChoiceOfCaseIsLogged) {
  testing::internal::CaptureStderr();
  load_vocabulary(cased_vocabulary);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("treated as cased"));
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

// Like transformers, stretto reads these settings from both files.
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
  EXPECT_THAT(testing::internal::GetCapturedStderr(), has_all("tokenizer.json: normalizer.lowercase: true",
                                                              "tokenizer_config.json: do_lower_case: false"));
  EXPECT_THAT(load(R"({"do_lower_case": false})", {.lowercase = true}), ElementsAre(6));
}

TEST(Tokenizer, ConfigurationNamesSpecialTokens) {
  const std::string vocabulary = "<unk>\n<s>\n</s>\nthe\n";
  EXPECT_THAT(vocabulary_error(vocabulary), has_all("vocab.txt:", "\"[CLS]\"", "tokenizer_config.json"));
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
  EXPECT_THAT(load_error(), has_all("vocab.txt:", "\"[SEP]\""));
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
              has_all("tokenizer.json: truncation.direction:", "\"left\"", "\"right\"", "\"Up\""));
}

// As in transformers, the lengths are only available to callers.
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
  EXPECT_THAT(
      json_error(file),
      has_all("tokenizer.json: truncation.strategy:", "LongestFirst, OnlyFirst or OnlySecond", "\"Middle\""));
  file["truncation"] = {{"max_length", -1}};
  EXPECT_THAT(json_error(file), has_all("tokenizer.json: truncation.max_length:", "number of tokens"));
  file["truncation"] = {{"max_length", "long"}};
  EXPECT_THAT(json_error(file), has_all("tokenizer.json: truncation.max_length:", "found string"));
  file = small_json();
  file["padding"] = {{"pad_id", -1}};
  EXPECT_THAT(json_error(file), has_all("tokenizer.json: padding.pad_id:", "-1"));
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

TEST(Tokenizer, ATooSmallMaximumLengthIsRefused) {
  const Tokenizer tokenizer = load_json(small_json());
  EXPECT_EQ(tokenizer.encode("the map", {.max_length = 2}).size(), 2);
  try {
    tokenizer.encode("the map", {.max_length = 1});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), has_all("length of 1 ", "2 special tokens", "2 or more"));
  }
}

TEST(Tokenizer, FilesWithoutATokenizer) {
  const TempFolder folder;
  EXPECT_THAT(
      [&] { Tokenizer::load(folder.path()); },
      testing::ThrowsMessage<DataError>(has_all(
          folder.path().string() + ":",
          "tokenizer.json, vocab.txt, vocab.json with merges.txt, sentencepiece.bpe.model or tokenizer.model")));
  EXPECT_THAT([&] { Tokenizer::load(folder.path() / "none"); },
              testing::ThrowsMessage<DataError>(
                  has_all((folder.path() / "none").string() + ":", "no such file or folder", "tokenizer")));
}

// Loading a pipe fails instead of blocking.
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
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }),
              has_all("tokenizer_config.json: truncation_side:", "\"left\"", "\"right\"", "\"top\""));
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
  EXPECT_EQ(copy(golden / "llama2_model"), "LlamaTokenizer");
  EXPECT_EQ(copy(golden / "unigram"), "PreTrainedTokenizerFast");
}

TEST(Tokenizer, BadByteLevelFiles) {
  const auto error_with = [](const char* pointer, const json& value) {
    json file = small_bpe();
    file[json::json_pointer(pointer)] = value;
    return json_error(file);
  };
  EXPECT_THAT(error_with("/model/merges/1", "Ġ x"),
              has_all("tokenizer.json: merge rule 2,", "\"Ġ x\"", "lacks \"x\""));
  EXPECT_THAT(error_with("/model/merges/1", json::array({"b", "a"})),
              HasSubstr("the vocabulary lacks \"ba\""));
  EXPECT_THAT(error_with("/model/merges/1", "ab"),
              has_all("tokenizer.json: model.merges[1]:", "two tokens", "\"ab\""));
  EXPECT_THAT(error_with("/model/dropout", 0.1), has_all("tokenizer.json: model.dropout:", "BPE"));
  EXPECT_THAT(error_with("/pre_tokenizer/use_regex", false),
              has_all("tokenizer.json: pre_tokenizer.use_regex:", "false", "true"));
  EXPECT_THAT(error_with("/pre_tokenizer/type", "BertPreTokenizer"),
              has_all("tokenizer.json: pre_tokenizer:", "BPE", "BertPreTokenizer", "ByteLevel"));
  EXPECT_THAT(
      error_with("/pre_tokenizer", json::parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Split"},
                         {"type": "Punctuation"}]})")),
      has_all("pre_tokenizer", "\"Sequence of Split, Punctuation\""));
  json file = small_bpe();
  file["decoder"]["type"] = "CTC";
  const Tokenizer tokenizer = load_json(file);
  EXPECT_THAT(error_of([&] { (void)tokenizer.decode(std::vector<int32_t>{7}); }),
              has_all("decoder.type:", "\"CTC\""));
}

TEST(Tokenizer, VocabularyAndMergesAreFiles) {
  const TempFolder folder;
  const auto write = [&](const char* name, const std::string& content) {
    write_file_atomic(folder.path() / name, content);
  };
  const auto load_error = [&] { return error_of([&] { Tokenizer::load(folder.path()); }); };
  write("vocab.json", small_bpe()["model"]["vocab"].dump());
  EXPECT_THAT(load_error(), has_all("vocab.json:", "no merges.txt"));
  write("merges.txt", "#version: 0.2\na b\r\n\nĠ ab\nÃ ©\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_error(), "no error");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), has_all("vocab.json:", "RoBERTa"));
  testing::internal::CaptureStderr();
  const TempFolder copy;
  copy_tokenizer(folder.path(), true, copy.path(), true);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "logged where the tokenizer was loaded";
  write("merges.txt", "a b\na b c\n");
  EXPECT_THAT(load_error(), has_all("merges.txt:2:", "\"a b c\"", "two tokens"));
  write("merges.txt", "a \xff\n");
  EXPECT_THAT(load_error(), HasSubstr("merges.txt:1: not valid UTF-8"));
  write("merges.txt", "a b\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  EXPECT_THAT(load_error(), has_all("tokenizer_config.json: tokenizer_class:", "\"CLIPTokenizer\"",
                                    "GPT2Tokenizer, RobertaTokenizer and BartTokenizer", "tokenizer.json"));
  std::filesystem::remove(folder.path() / "tokenizer_config.json");
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  EXPECT_THAT(load_error(), has_all("vocab.json:", "<|endoftext|>", "<s>, </s>", "tokenizer_config.json"));
}

TEST(Tokenizer, BadSentencePieceFiles) {
  const TempFolder folder;
  const auto load_error = [&](const std::string& content) {
    write_file_atomic(folder.path() / "a.model", content);
    return error_of([&] { Tokenizer::load(folder.path() / "a.model"); });
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
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }),
              has_all("tokenizer.model:", "unigram", "expected BPE"));
  std::filesystem::rename(folder.path() / "tokenizer.model", folder.path() / "sentencepiece.bpe.model");
  write_file_atomic(folder.path() / "sentencepiece.bpe.model",
                    read_file(std::filesystem::path(STRETTO_SOURCE_DIR) /
                              "tests/golden/tokenizer/llama2_model/tokenizer.model"));
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }),
              has_all("sentencepiece.bpe.model:", "BPE", "expected unigram"));
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
  EXPECT_THAT(error_of([&] { load_json(file).encode("b"); }), has_all("tokenizer.json:", "b\"", "unk_id"));
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
    return error_of([&] { Tokenizer::load(folder.path()); });
  };
  EXPECT_THAT(error_of_text("{\"model\":" + std::string(1 << 20, '[')),
              has_all("tokenizer.json:1:", "64 levels"));
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

}  // namespace
}  // namespace stretto::text
