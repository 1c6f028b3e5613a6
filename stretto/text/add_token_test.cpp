#include "stretto/text/add_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/tokenizer.h"

namespace stretto::text {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> ids_of(const std::filesystem::path& folder, const std::vector<std::string>& words) {
  return Tokenizer::load(folder, {.add_prefix_space = true}).encode(words, {.special_tokens = false}).ids;
}

TEST(AddSpecialToken, TakesTheNextIdOnce) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", R"({
    "added_tokens": [{"id": 3, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "ab": 1, "c": 2}, "unk_token": "<unk>"}})");
  EXPECT_EQ(add_special_token(folder.path(), "[FLERT]"), 4);
  EXPECT_EQ(add_special_token(folder.path(), "[FLERT]"), 4);
  EXPECT_EQ(add_special_token(folder.path(), "<s>"), 3);
  EXPECT_THAT(ids_of(folder.path(), {"ab", "[FLERT]", "C"}), ElementsAre(1, 4, 2));
  EXPECT_EQ(read_json(folder.path() / "tokenizer.json")["added_tokens"].size(), 2U);
}

TEST(AddSpecialToken, ExtendsVocabularies) {
  const TempFolder lines;
  write_file_atomic(lines.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe");
  EXPECT_EQ(add_special_token(lines.path(), "[FLERT]"), 6);
  EXPECT_EQ(Tokenizer::load(lines.path()).token(6), "[FLERT]");
  EXPECT_EQ(read_json(lines.path() / "tokenizer_config.json")["additional_special_tokens"],
            nlohmann::json({"[FLERT]"}));

  const TempFolder pairs;
  write_file_atomic(pairs.path() / "vocab.json",
                    R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "a": 5})");
  write_file_atomic(pairs.path() / "merges.txt", "#version: 0.2\n");
  EXPECT_EQ(add_special_token(pairs.path(), "[FLERT]"), 6);
  EXPECT_EQ(Tokenizer::load(pairs.path()).token(6), "[FLERT]");
}

TEST(AddSpecialToken, ASentencePieceModelIsRefused) {
  const TempFolder folder;
  const std::filesystem::path models =
      std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/tokenizer/llama2_model";
  std::filesystem::copy_file(models / "tokenizer.model", folder.path() / "tokenizer.model");
  EXPECT_THAT(message_of<DataError>([&] { add_special_token(folder.path(), "[FLERT]"); }),
              has_all("token [FLERT]", "cannot be added", "save it"));
}

}  // namespace
}  // namespace stretto::text
