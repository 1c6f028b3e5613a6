#include "stretto/token_corpus/growing_file.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>

#include "stretto/base/file_calls.h"
#include "stretto/base/input_file.h"

namespace stretto::token_corpus {

using file_calls::change, file_calls::fail;

std::string checksum_text(uint64_t hash) { return fmt::format("{:016x}", hash); }

void hash_file(const std::filesystem::path& path, int64_t bytes, StreamHash& hash,
               const std::function<void(int64_t bytes)>& progress) {
  const InputFile file(path);
  std::vector<char> part(size_t{1} << 20);
  for (int64_t done = 0; done < bytes;) {
    const std::span<char> wanted(part.data(),
                                 static_cast<size_t>(std::min<int64_t>(std::ssize(part), bytes - done)));
    file.read(done, wanted);
    hash.add({wanted.data(), wanted.size()});
    done += std::ssize(wanted);
    if (progress) progress(std::ssize(wanted));
  }
}

GrowingFile::GrowingFile(const std::filesystem::path& path, const CheckedFile& kept)
    : path_(path),
      file_(change("open", path,
                   [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644); })),
      bytes_(kept.bytes) {
  if (!file_) fail("write", path);
  if (kept.bytes > 0) hash_file(path, kept.bytes, hash_);
  if (kept.bytes > 0 && checksum_text(hash_.value()) != kept.checksum)
    throw DataError("{}: damaged since it was written; remove the corpus and begin again", path.string());
  if (change("ftruncate", path, [&] { return ::ftruncate(file_.get(), kept.bytes); }) != 0)
    fail("write", path);
  if (::lseek(file_.get(), kept.bytes, SEEK_SET) != kept.bytes) fail("write", path);
}

void GrowingFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = file_faults::call(
        "write", path_, bytes.size(), [&](size_t size) { return ::write(file_.get(), bytes.data(), size); });
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path_);
    const auto done = static_cast<size_t>(written);
    hash_.add(bytes.substr(0, done));
    bytes_ += written;
    bytes.remove_prefix(done);
  }
}

void GrowingFile::sync() { file_calls::sync(file_, path_); }

CheckedFile GrowingFile::state() const { return {bytes_, checksum_text(hash_.value())}; }

}  // namespace stretto::token_corpus
