#include "stretto/weights/zip_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"

namespace stretto::weights {
namespace {

using ::testing::HasSubstr;

std::string little_endian(uint64_t value, size_t bytes) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

// Returns an archive of one record as `zip -0` writes it, without 64-bit fields.
struct SmallZip {
  std::string name = "top/a", data = "content";
  uint64_t method = 0, offset = 0;

  std::string local() const {
    return "PK\3\4" + std::string(14, '\0') + little_endian(data.size(), 4) + little_endian(data.size(), 4) +
           little_endian(name.size(), 2) + little_endian(0, 2) + name + data;
  }
  std::string directory() const {
    return "PK\1\2" + std::string(6, '\0') + little_endian(method, 2) + std::string(8, '\0') +
           little_endian(data.size(), 4) + little_endian(data.size(), 4) + little_endian(name.size(), 2) +
           std::string(12, '\0') + little_endian(offset, 4) + name;
  }
  std::string text(const std::string& comment = "") const {
    const std::string records = local(), entries = directory();
    return records + entries + "PK\5\6" + std::string(4, '\0') + little_endian(1, 2) + little_endian(1, 2) +
           little_endian(entries.size(), 4) + little_endian(records.size(), 4) +
           little_endian(comment.size(), 2) + comment;
  }
};

std::string zip_error(const std::string& content) {
  return message_of<DataError>([&] { zip_records(content, "a.bin"); });
}

TEST(ZipRecords, ArchivesOfTorchSaveAreRead) {
  const std::string content =
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/pickled/small/pytorch_model.bin");
  const auto records = zip_records(content, "a.bin");
  EXPECT_EQ(records.at("byteorder"), "little");
  EXPECT_TRUE(records.contains("data.pkl"));
  EXPECT_EQ(records.at("data/0").size(), 3 * sizeof(double));
}

TEST(ZipRecords, ArchivesOfOtherWritersAreRead) {
  EXPECT_EQ(zip_records(SmallZip().text(), "a.bin").at("a"), "content");
  EXPECT_EQ(zip_records(SmallZip().text("a comment"), "a.bin").at("a"), "content");
}

TEST(ZipRecords, DamageIsFound) {
  const auto damaged = has_all("a.bin: ", "cut short or is damaged");
  const std::string whole = SmallZip().text();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(zip_error(whole.substr(0, size)), damaged) << size;
  EXPECT_THAT(zip_error(SmallZip{.offset = 1}.text()), damaged);
  EXPECT_THAT(zip_error(SmallZip{.offset = 1 << 30}.text()), damaged);
  EXPECT_THAT(zip_error(SmallZip{.method = 8}.text()), HasSubstr("the record \"a\" is compressed"));
  EXPECT_THAT(zip_error(SmallZip{.name = "top/\xff"}.text()), HasSubstr("is damaged"));
  std::string large = whole;
  const size_t entry = large.find("PK\1\2");
  large.replace(entry + 20, 8, little_endian(1 << 20, 4) + little_endian(1 << 20, 4));
  EXPECT_THAT(zip_error(large), HasSubstr("claims 1048576 bytes, more than the file has"));
  large.replace(entry + 20, 8, std::string(8, '\xFF'));  // in 64-bit fields that do not exist
  EXPECT_THAT(zip_error(large), damaged);
}

}  // namespace
}  // namespace stretto::weights
