#include "stretto/base/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Numbered {
  std::vector<std::string> lines;
  std::vector<int64_t> numbers;
};

Numbered lines_of(const std::string& content) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "text", content);
  LineReader reader(folder.path() / "text");
  Numbered all;
  for (auto lines = reader.next_lines(); !lines.empty(); lines = reader.next_lines()) {
    for (size_t i = 0; i < lines.size(); ++i) {
      all.lines.emplace_back(lines[i]);
      all.numbers.push_back(reader.line_number() + static_cast<int64_t>(i));
    }
  }
  EXPECT_TRUE(reader.next_lines().empty());
  return all;
}

TEST(LineReader, LinesAndTheirNumbers) {
  EXPECT_THAT(lines_of("").lines, ElementsAre());
  EXPECT_THAT(lines_of("\n").lines, ElementsAre(""));
  EXPECT_THAT(lines_of("a\n\nb\r\n").lines, ElementsAre("a", "", "b\r"));
  EXPECT_THAT(lines_of("a\nb").lines, ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a\nb").numbers, ElementsAre(1, 2));
}

// Parts end in the middle of lines and between them.
TEST(LineReader, LinesAcrossParts) {
  std::string content;
  std::vector<std::string> wanted;
  for (int i = 0; i < 3000; ++i) {
    wanted.push_back(std::string(static_cast<size_t>(i % 700), 'a') + std::to_string(i));
    content += wanted.back() + "\n";
  }
  wanted.emplace_back(1'000'000, 'b');
  content += wanted.back();
  const Numbered found = lines_of(content);
  EXPECT_EQ(found.lines, wanted);
  for (size_t i = 0; i < found.numbers.size(); ++i) EXPECT_EQ(found.numbers[i], static_cast<int64_t>(i) + 1);
}

TEST(LineReader, ALineOf16MebibytesIsTheLongest) {
  EXPECT_THAT(message_of<DataError>([&] { lines_of("a\n" + std::string(size_t{17} << 20, 'b')); }),
              HasSubstr("text:2: a line of more than 16 MiB; expected one text per line"));
}

TEST(LineReader, RestOfTheInput) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "text", "a\nb\n");
  EXPECT_EQ(LineReader(folder.path() / "text").rest(4), "a\nb\n");
  EXPECT_THROW(LineReader(folder.path() / "text").rest(3), DataError);
}

TEST(LineReader, FilesThatCannotBeRead) {
  const TempFolder folder;
  EXPECT_THROW(LineReader(folder.path() / "none"), IoError);
  EXPECT_THROW(LineReader(folder.path()).next_lines(), IoError);
}

}  // namespace
}  // namespace stretto
