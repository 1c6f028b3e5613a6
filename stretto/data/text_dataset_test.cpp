#include "stretto/data/text_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"
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
  const auto build = [&](int64_t max_length) {
    const TextDataset built(table, tokenizer, max_length, cache);
  };
  build(16);
  build(16);
  EXPECT_EQ(files_in(cache), 1);
  build(3);
  EXPECT_EQ(files_in(cache), 2);
  table.rows[0].text = "bad film";
  build(16);
  EXPECT_EQ(files_in(cache), 3);
}

TEST(TextDataset, ALengthWithoutTextIsRefused) {
  const TempFolder folder;
  const auto tokenizer = tiny_tokenizer(folder.path());
  EXPECT_THAT(message_of<ConfigError>([&] { TextDataset(tiny_table(), tokenizer, 2, folder.path()); }),
              ::testing::AllOf(::testing::StartsWith("max_length is 2"),
                               has_all("2 are special tokens", "no token of the text")));
  EXPECT_THAT(
      message_of<ConfigError>([&] {
        TextDataset(tiny_table(), tokenizer, 2, folder.path(), 1, {{"max_length", "data.max_length"}});
      }),
      ::testing::StartsWith("data.max_length is 2"));
  EXPECT_NO_THROW(TextDataset(tiny_table(), tokenizer, 3, folder.path()));
}

TEST(TextDataset, TheFingerprintDependsOnTheContents) {
  const TempFolder folder, other;
  const auto tokenizer = tiny_tokenizer(folder.path());
  const auto print = [&](const Table& table, const text::Tokenizer& with) {
    return TextDataset(table, with, 16, folder.path() / "cache").fingerprint();
  };
  const std::string whole = print(tiny_table(), tokenizer);
  EXPECT_EQ(print(tiny_table(), tokenizer), whole);
  Table changed = tiny_table();
  std::swap(changed.rows[0].label, changed.rows[1].label);
  EXPECT_NE(print(changed, tokenizer), whole);
  changed = tiny_table();
  changed.rows[1].text = "good";
  EXPECT_NE(print(changed, tokenizer), whole);
  write_file_atomic(other.path() / "vocab.txt",
                    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\nmore\n");
  EXPECT_NE(print(tiny_table(), text::Tokenizer::load(other.path() / "vocab.txt")), whole);
}

// A file of other texts under the name derived from the texts' hash.
TEST(TextDataset, ForgedCachesAreRefused) {
  const TempFolder folder;
  const auto tokenizer = tiny_tokenizer(folder.path());
  const auto cache = folder.path() / "cache";
  const TextDataset first(tiny_table(), tokenizer, 16, cache);
  const auto path = std::filesystem::directory_iterator(cache)->path();
  const auto forge = [&](int64_t samples, int32_t id, const std::vector<int32_t>& types = {0}) {
    FeatureFile::write(path, 2, samples, [&](int64_t, FeatureRows& rows) { rows.add({{&id, 1}, types}); });
    try {
      const TextDataset again(tiny_table(), tokenizer, 16, cache);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(forge(1, 5), has_all("1 sample, ids from 0 to 5", "expected 2 samples, ids from 0 to 7"));
  EXPECT_THAT(forge(2, 8), HasSubstr("ids from 0 to 8"));
  EXPECT_THAT(forge(2, -1), HasSubstr("ids from -1 to"));
  for (const std::vector<int32_t>& types : {std::vector<int32_t>{}, {0, 0}, {-1}, {256}})
    EXPECT_THAT(forge(2, 5, types), HasSubstr("not a type per id"));
  EXPECT_EQ(forge(2, 7), "accepted");
}

// Runs of all versions are resumed by this hash, so it must equal the hash of the token file of version
// 0.1.0.
TEST(TextDataset, TheFingerprintDoesNotDependOnTheCache) {
  const TempFolder folder;
  const auto tokenizer = tiny_tokenizer(folder.path());
  const TextDataset dataset(tiny_table(), tokenizer, 16, folder.path() / "cache");
  std::string bytes;
  const auto add = [](std::string& to, const auto& values) {
    to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  add(bytes, std::vector<int64_t>{0, 4, 7});
  add(bytes, std::vector<int32_t>{2, 5, 7, 3, 2, 6, 3});
  add(bytes, std::vector<uint8_t>(7, 0));
  std::string labels, parts;
  add(labels, std::vector<int64_t>{1, 0});
  add(parts, std::vector<uint64_t>{hash64(bytes), hash64(tokenizer.fingerprint()), hash64(labels)});
  EXPECT_EQ(dataset.fingerprint(), hash128_hex(parts));
}

}  // namespace
}  // namespace stretto::data
