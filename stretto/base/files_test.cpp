#include "stretto/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

TEST(Files, AtomicWriteReplacesAndLeavesNothingBeside) {
  const TempFolder folder;
  const auto path = folder.path() / "a.txt";
  write_file_atomic(path, "old");
  write_file_atomic(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, FailureWhileFillingKeepsTheOldContent) {
  const TempFolder folder;
  const auto path = folder.path() / "a.txt";
  write_file_atomic(path, "old");
  const auto broken = [](const WritePiece& write) {
    write("half");
    throw DataError("stop");
  };
  EXPECT_THROW(write_file_atomic(path, broken), DataError);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, MissingFileIsNamed) {
  try {
    read_file("/no/such/file");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "cannot read /no/such/file: No such file or directory");
  }
}

TEST(Files, MapsAndAppends) {
  const TempFolder folder;
  const auto path = folder.path() / "log";
  {
    AppendFile log(path);
    log.write("one\n");
    log.write("two\n");
  }
  EXPECT_EQ(MappedFile(path).text(), "one\ntwo\n");
  AppendFile(path, /*keep_old=*/false).write("three\n");
  EXPECT_EQ(MappedFile(path).text(), "three\n");
}

TEST(Files, EmptyFileMapsToNothing) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "empty", "");
  EXPECT_EQ(MappedFile(folder.path() / "empty").size(), 0u);
}

TEST(Files, FoldersAreReplacedWhole) {
  const TempFolder folder;
  const auto path = folder.path() / "model";
  for (const char* content : {"first", "second"}) {
    make_folders(folder.path() / "fresh");
    write_file_atomic(folder.path() / "fresh" / "a", content);
    replace_folder(folder.path() / "fresh", path);
    EXPECT_EQ(read_file(path / "a"), content);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, HomeIsExpanded) {
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(expand_home("~/data"), "/home/someone/data");
  EXPECT_EQ(expand_home("data~"), "data~");
}

}  // namespace
}  // namespace stretto
