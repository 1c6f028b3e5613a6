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
  EXPECT_THAT(message_of<DataError>([&] { (void)tokenizer.decode(std::vector<int32_t>{7}); }),
              has_all("decoder.type:", "\"CTC\""));
}

TEST(Tokenizer, VocabularyAndMergesAreFiles) {
  const TempFolder folder;
  const auto write = [&](const char* name, const std::string& content) {
    write_file_atomic(folder.path() / name, content);
  };
  const auto load_error = [&] { return message_of<DataError>([&] { Tokenizer::load(folder.path()); }); };
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

}  // namespace
}  // namespace stretto::text
