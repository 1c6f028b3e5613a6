#include "stretto/data/feature_file.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes two samples of two rows: {item}, {}.
void write_two(const std::filesystem::path& path) {
  FeatureFile::write(path, 2, 2, [](int64_t item, FeatureRows& samples) {
    const int32_t value[] = {static_cast<int32_t>(item)};
    samples.add({value, {}});
  });
}

TEST(FeatureFile, KeepsTheOrderOfItemsAndRethrowsTheFirstFailure) {
  const TempFolder folder;
  const auto path = folder.path() / "features";
  FeatureFile::write(path, 2, 1000, [](int64_t item, FeatureRows& samples) {
    const std::vector<int32_t> row(static_cast<size_t>(item % 5), static_cast<int32_t>(item));
    const int32_t number[] = {static_cast<int32_t>(item)};
    for (int64_t i = 0; i < item % 3; ++i) samples.add({row, number});
  });
  const FeatureFile file(path, 2);
  int64_t sample = 0;
  for (int64_t item = 0; item < 1000; ++item) {
    for (int64_t i = 0; i < item % 3; ++i, ++sample) {
      ASSERT_THAT(file.row(sample, 1), ElementsAre(item));
      ASSERT_EQ(std::ssize(file.row(sample, 0)), item % 5);
    }
  }
  EXPECT_EQ(file.size(), sample);
  EXPECT_THROW(FeatureFile(path, 3), DataError);
  EXPECT_EQ(message_of<DataError>([&] {
              FeatureFile::write(path, 1, 1000, [](int64_t item, FeatureRows&) {
                if (item > 100) throw DataError("item {}", item);
              });
            }),
            "item 101");
  EXPECT_EQ(FeatureFile(path, 2).size(), sample) << "the file is replaced as a whole or not at all";
}

TEST(FeatureFile, IsWrittenOnceAndThenRead) {
  const TempFolder folder;
  const auto path = folder.path() / "new" / "x.texts";
  int64_t calls = 0;
  const auto cached = [&](int64_t rows) {
    return FeatureFile::cached(path, rows, 1, {"a.tsv", "texts"},
                               [&](int64_t, FeatureRows& samples) {
                                 ++calls;
                                 samples.add({std::span<const int32_t>()});
                               })
        .size();
  };
  EXPECT_EQ(cached(1), 1);
  EXPECT_EQ(cached(1), 1);
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(cached(2), DataError);
}

// The offsets point outside the file, whose checksum is valid.
TEST(FeatureFile, ForgedOffsetsAreRefused) {
  const TempFolder folder;
  const auto path = folder.path() / "x.texts";
  write_two(path);
  const std::string whole = read_file(path);
  for (const auto& [index, value] :
       std::vector<std::pair<size_t, int64_t>>{{0, -1}, {1, 1 << 20}, {1, -5}, {3, 0}, {4, 1}}) {
    std::string forged = whole;
    constexpr size_t header = 40;
    std::memcpy(forged.data() + header + index * sizeof value, &value, sizeof value);
    const uint64_t checksum = hash64(std::string_view(forged).substr(header));
    std::memcpy(forged.data() + header - sizeof checksum, &checksum, sizeof checksum);
    write_file_atomic(path, forged);
    EXPECT_THAT(message_of<DataError>([&] { FeatureFile file(path, 2); }),
                HasSubstr("its rows are not consecutive"));
  }
}

TEST(FeatureFile, DamageIsFound) {
  const TempFolder folder;
  const auto path = folder.path() / "x.texts";
  write_two(path);
  const std::string good = read_file(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write_file_atomic(path, bad);
    EXPECT_THROW(FeatureFile(path, 2), DataError) << "byte " << i;
  }
  write_file_atomic(path, good.substr(0, good.size() - 1));
  EXPECT_THROW(FeatureFile(path, 2), DataError);
}

}  // namespace
}  // namespace stretto::data
