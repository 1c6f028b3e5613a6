#include "stretto/checkpoint_format/run_lock.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/path_error.h"
#include "stretto/base/strings.h"

namespace stretto::checkpoint_format {
namespace {

constexpr const char* file_name = ".lock";
using Clock = std::chrono::steady_clock;

bool is_same_file(int fd, const std::filesystem::path& path) {
  using Status = struct stat;
  Status opened{}, named{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

// Returns false if another process holds the lock.
bool lock(int fd, const std::filesystem::path& path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) throw IoError("cannot lock {}: {}", path.string(), std::strerror(errno));
  return false;
}

// Like lock(), for a folder; also true on file systems that lock only files that are open for writing (NFS).
bool lock_folder(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

std::unique_ptr<NewFolder> make_folder(const std::filesystem::path& run) {
  try {
    return std::make_unique<NewFolder>(run);
  } catch (const PathError& error) {
    throw PathError("{}; choose another output", error.what());
  }
}

// The descriptor of the folder that this process has inherited from the one that locked it.
Fd inherited(const std::filesystem::path& run) {
  const char* number = std::getenv(RunLock::variable);
  const int fd = number == nullptr ? -1 : static_cast<int>(parse_int(number).value_or(-1));
  return is_same_file(fd, run) && lock_folder(fd) ? Fd(fd) : Fd();
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& run, std::chrono::milliseconds patience)
    : run_(std::filesystem::absolute(run)), folder_(inherited(run)) {
  if (folder_) return;
  for (const auto deadline = Clock::now() + patience; Clock::now() < deadline;) {
    auto made = make_folder(run);
    if (auto taken = try_take(run)) {
      folder_ = std::move(taken->folder_);
      file_ = std::move(taken->file_);
      made_ = std::move(made);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw ConfigError("another run is writing into {}; wait for its end, or choose another output",
                    run.string());
}

// Removes everything under the lock: a process that waits for it finds that the folder is gone, and recreates
// it.
RunLock::~RunLock() {
  std::error_code ignored;
  if (made_ == nullptr || std::filesystem::exists(run_ / "config.yaml", ignored)) return;
  if (is_same_file(folder_.get(), run_)) std::filesystem::remove(run_ / file_name, ignored);
  made_.reset();
}

std::optional<RunLock> RunLock::try_take(const std::filesystem::path& run) {
  // Child processes inherit both descriptors.
  Fd folder(::open(run.c_str(), O_RDONLY | O_DIRECTORY));
  if (!folder && errno == ENOENT) return std::nullopt;
  if (!folder) throw IoError("cannot open {}: {}", run.string(), std::strerror(errno));
  if (!lock_folder(folder.get()) || !is_same_file(folder.get(), run)) return std::nullopt;
  const std::filesystem::path path = run / file_name;
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0644));
  if (!file && errno == ENOENT) return std::nullopt;  // the folder was removed at this moment
  if (!file) fail_to_create(errno, fmt::format("cannot write {}", path.string()));
  if (!lock(file.get(), path) || !is_same_file(file.get(), path)) return std::nullopt;
  return RunLock(std::move(folder), std::move(file));
}

bool RunLock::is_run(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / file_name);
}

}  // namespace stretto::checkpoint_format
