#include "stretto/base/files.h"

#include <csignal>
#include <cstdlib>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/message_support.h"
#include "stretto/base/path_error.h"
#include "stretto/base/temp_folder.h"
#include "stretto/base/temporary_name.h"

namespace stretto {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

auto entries(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(Files, AtomicWriteReplacesAndLeavesNoOtherFile) {
  const TempFolder folder;
  const auto path = folder.path() / "a.txt";
  write_file_atomic(path, "old");
  write_file_atomic(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(entries(folder.path()), 1);
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
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(Files, MissingFileIsNamed) {
  EXPECT_EQ(message_of<IoError>([&] { read_file("/no/such/file"); }),
            "cannot read /no/such/file: No such file or directory");
}

TEST(Files, OnlyAMissingFileIsEmpty) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "a", "text");
  EXPECT_EQ(read_if_exists(folder.path() / "a"), "text");
  EXPECT_EQ(read_if_exists(folder.path() / "b"), "");
  EXPECT_EQ(read_if_exists(folder.path() / "a/b"), "");
  EXPECT_THROW(read_if_exists(folder.path()), IoError);
  EXPECT_EQ(read_if_readable(folder.path() / "a"), "text");
  EXPECT_EQ(read_if_readable(folder.path()), "");
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

TEST(Files, FoldersAreReplacedAtomically) {
  const TempFolder folder;
  const auto path = folder.path() / "model";
  for (const char* content : {"first", "second"}) {
    make_folders(folder.path() / "fresh");
    write_file_atomic(folder.path() / "fresh" / "a", content);
    replace_folder(folder.path() / "fresh", path);
    EXPECT_EQ(read_file(path / "a"), content);
  }
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(Files, WriterCountsBytesAndKeepsFinishedFiles) {
  const TempFolder folder;
  const auto path = folder.path() / "big";
  FileWriter file(path);
  file.write("head");
  const std::vector<std::byte> bytes(3 << 20, std::byte{7});
  file.write(bytes);
  EXPECT_EQ(file.size(), 4 + (3 << 20));
  file.finish();
  const std::string content = read_file(path);
  EXPECT_EQ(content.substr(0, 5), "head\a");
  EXPECT_EQ(content.size(), 4u + (3 << 20));
}

TEST(Files, WriterRemovesUnfinishedFiles) {
  const TempFolder folder;
  {
    FileWriter file(folder.path() / "half");
    file.write("half");
  }
  EXPECT_EQ(entries(folder.path()), 0);
}

TEST(Files, FoldersAreMadeWithTheirParents) {
  const TempFolder folder;
  make_folders(folder.path() / "a/b/c/");
  make_folders(folder.path() / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a/b/c"));
  const std::string file = folder.path() / "file";
  write_file_atomic(file, "");
  EXPECT_THAT(message_of<IoError>([&] { make_folders(file); }),
              "cannot create the folder " + file + ": Not a directory");
  EXPECT_THAT(message_of<IoError>([&] { make_folders(file + "/a/b"); }),
              "cannot create the folder " + file + "/a/b: " + file + ": Not a directory");
}

TEST(Files, PathsOfResultsAreRefusedWhereNoFileCanBeCreated) {
  const TempFolder folder;
  const auto path = [&](const std::string& name) { return folder.path() / name; };
  write_file_atomic(path("file"), "");
  make_folders(path("a"));
  EXPECT_NO_THROW(require_file_path(path("file")));
  EXPECT_NO_THROW(require_file_path(path("a/new")));
  const auto refuses = [&](const std::string& name, const char* reason) {
    EXPECT_THAT(message_of<PathError>([&] { require_file_path(path(name)); }),
                "cannot write " + path(name).string() + ": " + reason);
  };
  refuses("no/new", "No such file or directory");
  refuses("file/new", "Not a directory");
  refuses("a", "Is a directory");
  refuses(std::string(300, 'x'), "File name too long");
}

TEST(Files, FolderIsRenamedToAFreeNameOnly) {
  const TempFolder folder;
  make_folders(folder.path() / "a");
  make_folders(folder.path() / "taken");  // empty: rename(2) would replace it
  EXPECT_THAT(message_of<IoError>([&] { rename_folder(folder.path() / "a", folder.path() / "taken"); }),
              EndsWith("taken: File exists"));
  EXPECT_EQ(entries(folder.path()), 2);
  rename_folder(folder.path() / "a", folder.path() / "b");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "b"));
  EXPECT_THAT(message_of<IoError>([&] { rename_folder(folder.path() / "a", folder.path() / "c"); }),
              EndsWith("c: No such file or directory"));
}

TEST(Files, FolderIsRemovedWithItsContent) {
  const TempFolder folder;
  const auto outside = folder.path() / "outside";
  const auto path = folder.path() / "a";
  make_folders(outside);
  make_folders(path / "b");
  write_file_atomic(path / "b" / "file", "x");
  std::filesystem::create_directory_symlink(outside, path / "link");
  make_folders(folder.path() / "a.removing" / "left by a process that died");
  remove_folder(path);
  remove_folder(path);
  EXPECT_EQ(entries(folder.path()), 1);
  EXPECT_TRUE(std::filesystem::is_directory(outside));  // the link was removed, not its target
}

TEST(Files, PartlyRemovedFolderIsRemovedCompletely) {
  const TempFolder folder;
  make_folders(folder.path() / "a.removing" / "b");
  remove_folder(folder.path() / "a.removing");
  EXPECT_EQ(entries(folder.path()), 0);
}

// In a shared folder, another user could create a link under a predictable name.
TEST(Files, LinksAreNeverWrittenThrough) {
  const TempFolder folder;
  const auto victim = folder.path() / "victim";
  write_file_atomic(victim, "unchanged");
  for (const std::string& name : {std::string("a"), "a.tmp" + std::to_string(::getpid())})
    std::filesystem::create_symlink(victim, folder.path() / name);
  write_file_atomic(folder.path() / "a", "new");
  EXPECT_EQ(read_file(victim), "unchanged");
  EXPECT_EQ(read_file(folder.path() / "a"), "new");
  std::filesystem::create_symlink(victim, folder.path() / "b");
  FileWriter file(folder.path() / "b");
  file.write("new");
  file.finish();
  EXPECT_EQ(read_file(victim), "unchanged");
  EXPECT_EQ(read_file(folder.path() / "b"), "new");
}

TEST(Files, TemporaryNamesCannotBeGuessed) {
  EXPECT_NE(temporary_name("/x/a"), temporary_name("/x/a"));
  EXPECT_THAT(temporary_name("/x/a").string(), StartsWith("/x/a.tmp" + std::to_string(::getpid()) + "-"));
}

// A write removes files left in the folder by killed processes, but not those of running ones.
TEST(Files, AbandonedTemporaryFilesAreRemoved) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    FileWriter file(temporary_name(folder.path() / "a"));
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(entries(folder.path()), 1);
  FileWriter running(temporary_name(folder.path() / "c"));
  write_file_atomic(folder.path() / "b", "x");
  EXPECT_EQ(entries(folder.path()), 2);
}

TEST(Files, OnlyFilesAreMapped) {
  const TempFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message_of<IoError>([&] { MappedFile file(pipe); }),
              HasSubstr("it is a pipe; expected a file"));
  EXPECT_THAT(message_of<IoError>([] { MappedFile file("/dev/zero"); }),
              HasSubstr("/dev/zero: it is a device; expected a file"));
  EXPECT_THAT(message_of<IoError>([] { read_file("/dev/zero"); }),
              HasSubstr("it is a device with more than 256 MiB"));
}

TEST(Files, HomeIsExpanded) {
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(expand_home("~/data"), "/home/someone/data");
  EXPECT_EQ(expand_home("data~"), "data~");
}

}  // namespace
}  // namespace stretto
