#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/text/tokenizer_fixture.h"

namespace stretto::text {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* cased_vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nThe\nmap\n##s\n";

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
  const auto load_error = [&] { return message_of<DataError>([&] { Tokenizer::load(folder.path()); }); };
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
  EXPECT_THAT(message_of<ConfigError>([&] { tokenizer.encode("the map", {.max_length = 1}); }),
              has_all("length of 1 ", "2 special tokens", "2 or more"));
}

TEST(Tokenizer, TruncationSideIsConfigured) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", small_bpe().dump());
  write_file_atomic(folder.path() / "tokenizer_config.json", R"({"truncation_side": "left"})");
  EXPECT_THAT(Tokenizer::load(folder.path()).encode("abb", {.max_length = 3}).ids, ElementsAre(0, 3, 1));
  write_file_atomic(folder.path() / "tokenizer_config.json", R"({"truncation_side": "top"})");
  EXPECT_THAT(message_of<DataError>([&] { Tokenizer::load(folder.path()); }),
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

}  // namespace
}  // namespace stretto::text
