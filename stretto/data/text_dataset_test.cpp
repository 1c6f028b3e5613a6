#include "stretto/data/text_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/temp_folder.h"

namespace stretto::data {
namespace {

text::Tokenizer tiny_tokenizer(const std::filesystem::path& folder) {
  write_file_atomic(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\n");
  return text::Tokenizer::load(folder / "vocab.txt");
}

Table tiny_table() {
  Table table;
  table.name = "tiny.tsv";
  table.has_labels = true;
  table.rows = {{"good film", "", 1, 2}, {"bad", "", 0, 3}};
  return table;
}

int64_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(TextDataset, PacksWithoutPadding) {
  const TempFolder folder;
  const TextDataset dataset(tiny_table(), tiny_tokenizer(folder.path()), 16, folder.path() / "cache");
  const std::vector<int64_t> samples = {1, 0};
  const Batch batch = dataset.pack(samples);
  EXPECT_TRUE(at::equal(batch.at("input_ids"), at::tensor({2, 6, 3, 2, 5, 7, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("position_ids"), at::tensor({0, 1, 2, 0, 1, 2, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("samples"), at::tensor({1, 1, 1, 0, 0, 0, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("cu_seqlens"), at::tensor({0, 3, 7}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("labels"), at::tensor({0, 1}, at::kLong)));
  EXPECT_EQ(batch.count, 2);
  EXPECT_EQ(dataset.pack({}).count, 0);
}

TEST(TextDataset, CacheIsReusedUntilSomethingChanges) {
  const TempFolder folder;
  const auto cache = folder.path() / "cache";
  const auto tokenizer = tiny_tokenizer(folder.path());
  Table table = tiny_table();
  TextDataset(table, tokenizer, 16, cache);
  TextDataset(table, tokenizer, 16, cache);
  EXPECT_EQ(files_in(cache), 1);
  TextDataset(table, tokenizer, 3, cache);
  EXPECT_EQ(files_in(cache), 2);
  table.rows[0].text = "bad film";
  TextDataset(table, tokenizer, 16, cache);
  EXPECT_EQ(files_in(cache), 3);
}

TEST(TokenFile, DamageIsFound) {
  const TempFolder folder;
  const auto path = folder.path() / "x.tokens";
  TokenFile::write(path, 2, [](int64_t sample, std::vector<int32_t>& ids, std::vector<uint8_t>& types) {
    ids.push_back(static_cast<int32_t>(sample));
    types.push_back(0);
  });
  const std::string good = read_file(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write_file_atomic(path, bad);
    EXPECT_THROW(TokenFile{path}, DataError) << "byte " << i;
  }
  write_file_atomic(path, good.substr(0, good.size() - 1));
  EXPECT_THROW(TokenFile{path}, DataError);
}

}  // namespace
}  // namespace stretto::data
