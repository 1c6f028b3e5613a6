#include "stretto/columnar/json_lines.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"
#include "stretto/columnar/saved_files.h"

namespace stretto::columnar {
namespace {

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/columnar" / name;
}

Format format_in(const std::filesystem::path& file) {
  return format_of(read_file(file).substr(0, 8)).value();
}

std::string lines_of(const std::filesystem::path& file, const std::string& column = "") {
  JsonLines rows(file, format_in(file), column);
  std::string all;
  for (std::string_view part; !(part = rows.next()).empty();) {
    EXPECT_TRUE(part.ends_with('\n'));
    EXPECT_LT(part.size(), size_t{3} << 19);
    all += part;
  }
  EXPECT_EQ(rows.next(), "");
  return all;
}

std::vector<nlohmann::json> rows_of(const std::string& lines) {
  std::vector<nlohmann::json> rows;
  for (const std::string_view line : split(lines, '\n'))
    if (!line.empty()) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(ColumnarFormat, IsShownByTheFirstBytes) {
  EXPECT_EQ(format_in(golden("rows.parquet")), Format::parquet);
  EXPECT_EQ(format_in(golden("rows.feather")), Format::arrow_file);
  EXPECT_EQ(format_in(golden("rows.arrow")), Format::arrow_stream);
  for (const char* text : {"", "PAR", "text", "\xFF\xFE", "{\"text\": 1}"})
    EXPECT_EQ(format_of(text), std::nullopt);
}

TEST(ColumnarFiles, AreRefusedWithAdviceWithoutTheLibrary) {
  const auto refusal_of = [](Format format) -> std::string {
    try {
      JsonLines("a.parquet", format, "", "libmissing.so");
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  const char* const reason = "which this build of stretto does not read (libmissing.so: ";
  EXPECT_THAT(refusal_of(Format::parquet),
              has_all("a.parquet: a Parquet file,", reason, "scripts/setup.sh arrow", "read_parquet"));
  EXPECT_THAT(refusal_of(Format::arrow_stream),
              has_all("a.parquet: an Arrow file,", reason, "scripts/setup.sh arrow", "load_from_disk"));
}

TEST(SavedDataSets, NameTheirFilesInOrder) {
  const auto files = saved_files(golden("saved"));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0], golden("saved/data-00000-of-00002.arrow"));
  EXPECT_EQ(files[1], golden("saved/data-00001-of-00002.arrow"));
  EXPECT_TRUE(saved_files(golden("")).empty());
  const TempFolder folder;
  for (const char* content : {"{}", "[]", R"({"_data_files": [{}]})"}) {
    write_file_atomic(folder.path() / "state.json", content);
    EXPECT_THAT(message_of<DataError>([&] { saved_files(folder.path()); }),
                has_all("state.json: it names no files of data"));
  }
}

class ArrowFiles : public testing::Test {
 protected:
  void SetUp() override {
#ifndef STRETTO_HAS_ARROW
    GTEST_SKIP() << "this build has no Arrow C++ (scripts/setup.sh arrow)";
#endif
  }
  TempFolder folder_;
};

TEST_F(ArrowFiles, RowsHaveTheValuesOfAllTypes) {
  const auto expected = rows_of(read_file(golden("rows.jsonl")));
  ASSERT_EQ(expected.size(), 5u);
  for (const char* name : {"rows.parquet", "rows.feather", "rows.arrow"}) {
    const auto found = rows_of(lines_of(golden(name)));
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i]) << name << " row " << i;
  }
}

TEST_F(ArrowFiles, OneColumnIsRead) {
  for (const char* name : {"rows.parquet", "rows.feather", "rows.arrow"}) {
    const std::string lines = lines_of(golden(name), "text");
    EXPECT_TRUE(lines.starts_with("{\"text\":\"a film\"}\n{\"text\":\"two \\\"quotes\\\"\\nand a line"))
        << lines;
    const auto nested = rows_of(lines_of(golden(name), "answers"));
    EXPECT_EQ(nested.at(3).dump(), R"({"answers":{"start":[1,2],"text":["b","c"]}})");
    EXPECT_EQ(lines_of(golden(name), "txt"), lines_of(golden(name))) << "a file without the column";
  }
}

TEST_F(ArrowFiles, ManyRowsAreReadInParts) {
  const auto rows = rows_of(lines_of(golden("many.parquet")));
  ASSERT_EQ(rows.size(), 20000u);
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i].at("number"), i);
  JsonLines file(golden("many.parquet"), Format::parquet, "text");
  EXPECT_EQ(file.progress(), 0);
  EXPECT_FALSE(file.next().empty());
  EXPECT_GT(file.progress(), 0.3);
  EXPECT_LT(file.progress(), 0.9);
}

TEST_F(ArrowFiles, DamagedOnesAreRefused) {
  for (const auto& [name, kind] : {std::pair("rows.parquet", "a Parquet file"),
                                   {"rows.feather", "an Arrow file"},
                                   {"rows.arrow", "an Arrow file"}}) {
    const std::string bytes = read_file(golden(name));
    for (const size_t size : {size_t{8}, bytes.size() / 2, bytes.size() - 20}) {
      const std::filesystem::path file = folder_.path() / name;
      write_file_atomic(file, bytes.substr(0, size));
      const auto read = [&] { return lines_of(file); };
      // The end of a stream may be missing.
      if (std::string_view(name) == "rows.arrow" && size > bytes.size() / 2) continue;
      EXPECT_THAT(message_of<DataError>(read),
                  has_all(file.string() + ": " + kind + " that Arrow cannot read: "))
          << size;
    }
  }
}

}  // namespace
}  // namespace stretto::columnar
