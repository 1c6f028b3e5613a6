#include "stretto/base/files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/file_calls.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/path_error.h"
#include "stretto/base/replaced_folder.h"
#include "stretto/base/temporary_name.h"

namespace stretto {

using file_calls::change, file_calls::fail, file_calls::sync;

namespace {

constexpr size_t max_unsized_bytes = size_t{256} << 20;  // for pipes and devices, which may never end

Fd open_file(const std::filesystem::path& path, int flags, const char* verb) {
  Fd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file) fail(verb, path);
  return file;
}

struct stat status_of(const Fd& file, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail("read", path);
  if (S_ISDIR(info.st_mode)) throw IoError("cannot read {}: it is a folder; expected a file", path.string());
  return info;
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a socket";
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path named = path.has_filename() ? path : path.parent_path();  // "a/b/" is b in a
  return named.has_parent_path() ? named.parent_path() : ".";
}

std::filesystem::path with_suffix(const std::filesystem::path& path, const std::string& suffix) {
  std::filesystem::path result = path.has_filename() ? path : path.parent_path();
  result += suffix;
  return result;
}

bool path_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

int rename_to_free_name(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // The file system does not support RENAME_NOREPLACE. Between check and rename only an empty folder could be
  // replaced.
  if (!path_exists(to)) return ::rename(from.c_str(), to.c_str());
  errno = EEXIST;
  return -1;
}

// Makes a new folder durable with fsync of its parent, if the parent can be opened.
void sync_parent(const std::filesystem::path& folder) {
  const Fd parent(::open(folder_of(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent) sync(parent, folder_of(folder));
}

// Returns the first folder of the path that could not be created, with the reason in errno; nullopt on
// success.
std::optional<std::filesystem::path> make_missing_folders(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return std::nullopt;
  if (auto obstacle = make_missing_folders(folder.parent_path())) return obstacle;
  if (!folder.has_filename()) return std::nullopt;  // "a/b/" is "a/b", created above
  if (change("mkdir", folder, [&] { return ::mkdir(folder.c_str(), 0777); }) == 0) {
    sync_parent(folder);
    return std::nullopt;
  }
  const int reason = errno;
  if (reason == EEXIST && std::filesystem::is_directory(folder, error))
    return std::nullopt;  // created by another process
  errno = reason;
  return folder;
}

// Does nothing if `path` does not exist.
void remove_tree(const std::filesystem::path& path) {
  if (!path_exists(path)) return;
  const bool is_folder = std::filesystem::is_directory(std::filesystem::symlink_status(path));
  if (is_folder) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      remove_tree(entry->path());
    }
    if (error) throw IoError("cannot remove {}: {}", path.string(), error.message());
  }
  const int result = is_folder ? change("rmdir", path, [&] { return ::rmdir(path.c_str()); })
                               : change("unlink", path, [&] { return ::unlink(path.c_str()); });
  if (result != 0) fail("remove", path);
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Fd file = open_file(path, O_RDONLY, "read");
  const struct stat info = status_of(file, path);
  std::string content;
  if (S_ISREG(info.st_mode)) content.reserve(static_cast<size_t>(info.st_size));
  char chunk[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.get(), chunk, sizeof chunk);
    if (got == 0) return content;
    if (got < 0) {
      if (errno == EINTR) continue;
      fail("read", path);
    }
    content.append(chunk, static_cast<size_t>(got));
    if (!S_ISREG(info.st_mode) && content.size() > max_unsized_bytes) {
      throw IoError("cannot read {}: it is {} with more than {} MiB; expected a file", path.string(),
                    kind_of(info.st_mode), max_unsized_bytes >> 20);
    }
  }
}

std::string read_if_exists(const std::filesystem::path& path) {
  std::error_code other;  // an error other than a missing file, which read_file reports
  const bool missing = std::filesystem::status(path, other).type() == std::filesystem::file_type::not_found;
  return missing ? "" : read_file(path);
}

std::string read_if_readable(const std::filesystem::path& path) {
  try {
    return read_if_exists(path);
  } catch (const IoError&) {
    return "";
  }
}

void write_file_atomic(const std::filesystem::path& path,
                       const std::function<void(const WritePiece&)>& fill) {
  const std::filesystem::path folder = folder_of(path);
  remove_abandoned(folder);
  const std::filesystem::path temporary = temporary_name(path);
  {
    FileWriter file(temporary);
    fill([&](std::string_view piece) { file.write(piece); });
    file.finish();
  }
  if (change("rename", path, [&] { return ::rename(temporary.c_str(), path.c_str()); }) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    fail("write", path);
  }
  sync_folder(folder);
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  write_file_atomic(path, [&](const WritePiece& write) { write(content); });
}

void make_folders(const std::filesystem::path& folder) {
  if (const auto obstacle = make_missing_folders(folder)) {
    const int reason = errno == EEXIST ? ENOTDIR : errno;  // EEXIST: a file has the folder's name
    fail_to_create(reason, fmt::format("cannot create the folder {}{}", folder.string(),
                                       *obstacle == folder ? "" : ": " + obstacle->string()));
  }
}

void sync_folder(const std::filesystem::path& folder) {
  sync(open_file(folder, O_RDONLY | O_DIRECTORY, "fsync"), folder);
}

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (change("rename", to, [&] { return rename_to_free_name(from, to); }) != 0) {
    throw IoError("cannot rename {} to {}: {}", from.string(), to.string(), std::strerror(errno));
  }
  sync_folder(folder_of(to));
  if (folder_of(from) != folder_of(to)) sync_folder(folder_of(from));
}

void remove_folder(const std::filesystem::path& folder) {
  constexpr const char* suffix = ".removing";
  if (folder.native().ends_with(suffix)) return remove_tree(folder);
  const std::filesystem::path renamed = with_suffix(folder, suffix);
  remove_tree(renamed);
  if (!path_exists(folder)) return;
  rename_folder(folder, renamed);
  remove_tree(renamed);
}

void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& path) {
  const std::filesystem::path old = replaced_path(path);
  if (!path_exists(path)) {
    rename_folder(fresh, path);
    return remove_tree(old);
  }
  remove_tree(old);  // of an interrupted call
  const auto exchange = [&] {
    return ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE);
  };
  if (change("exchange", path, exchange) == 0) {
    sync_folder(folder_of(path));
    return remove_tree(fresh);
  }
  if (errno != EINVAL && errno != ENOSYS) fail("write", path);
  try {
    rename_folder(path, old);
    rename_folder(fresh, path);
  } catch (const IoError&) {
    restore_replaced(path);
    throw;
  }
  remove_tree(old);
}

std::filesystem::path expand_home(const std::string& path) {
  if (path != "~" && path.rfind("~/", 0) != 0) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr)
    throw ConfigError("{}: HOME is not set, so \"~\" cannot be expanded; use an absolute path", path);
  return std::string(home) + path.substr(1);
}

MappedFile::MappedFile(const std::filesystem::path& path) : MappedFile(path, PROT_READ) {}

MappedFile MappedFile::copy_on_write(const std::filesystem::path& path) {
  return {path, PROT_READ | PROT_WRITE};
}

MappedFile::MappedFile(const std::filesystem::path& path, int protection) {
  const Fd file = open_file(path, O_RDONLY | O_NONBLOCK, "read");  // a pipe without a writer must not block
  const struct stat info = status_of(file, path);
  if (!S_ISREG(info.st_mode)) {
    throw IoError("cannot read {}: it is {}; expected a file, write the content to one first", path.string(),
                  kind_of(info.st_mode));
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  data_ = ::mmap(nullptr, size_, protection, MAP_PRIVATE, file.get(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    fail("map", path);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

}  // namespace stretto
