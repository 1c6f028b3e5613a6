#include "stretto/checkpoint/transfer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/checkpoint_format/folder.h"

namespace stretto::checkpoint {
namespace {

constexpr int64_t broadcast_chunk = int64_t{8} << 20;

// Several messages are in flight while rank 0 writes one.
constexpr int64_t message_chunk = int64_t{1} << 20;

// A file that is read in chunks. A file that cannot be read has no chunks, and a reason.
class Source {
 public:
  explicit Source(const std::filesystem::path& path) {
    try {
      file_.emplace(path);
    } catch (const IoError& error) {
      failure_ = error.what();
    }
  }
  int64_t size() const { return file_ ? static_cast<int64_t>(file_->size()) : 0; }
  const std::string& failure() const { return failure_; }
  Tensor chunk(int64_t begin, int64_t bytes) const {
    Tensor chunk = at::empty({bytes}, at::kByte);
    std::memcpy(chunk.data_ptr(), file_->data() + begin, static_cast<size_t>(bytes));
    return chunk;
  }

 private:
  std::optional<MappedFile> file_;
  std::string failure_;
};

// A file that is written in chunks; after a failure the rest is dropped, so that the sender need not be told.
class Target {
 public:
  explicit Target(const std::filesystem::path& path) {
    attempt([&] { file_.emplace(path); });
  }
  void add(const Tensor& chunk) {
    attempt([&] {
      file_->write(std::string_view(static_cast<const char*>(chunk.const_data_ptr()), chunk.nbytes()));
    });
  }
  std::string finish() {
    attempt([&] { file_->finish(); });
    return failure_;
  }

 private:
  template <class Act>
  void attempt(const Act& act) {
    if (!failure_.empty()) return;
    try {
      act();
    } catch (const IoError& error) {
      failure_ = error.what();
    }
  }
  std::optional<FileWriter> file_;
  std::string failure_;
};

// Calls `move(begin, bytes)` for the chunks of a file.
template <class Move>
void each_chunk(int64_t size, int64_t chunk, const Move& move) {
  for (int64_t begin = 0; begin < size; begin += chunk) move(begin, std::min(chunk, size - begin));
}

void send_file(Group& group, const std::filesystem::path& path) {
  const Source file(path);
  group.send(at::full({1}, file.failure().empty() ? file.size() : -1, at::kLong), 0).wait();
  each_chunk(file.size(), message_chunk,
             [&](int64_t begin, int64_t bytes) { group.send(file.chunk(begin, bytes), 0).wait(); });
}

std::string receive_file(Group& group, int from, const std::filesystem::path& path) {
  Tensor size = at::zeros({1}, at::kLong);
  group.recv(size, from).wait();
  if (size.item<int64_t>() < 0) return fmt::format("rank {} cannot read {}", from, path.filename().string());
  Target file(path);
  each_chunk(size.item<int64_t>(), message_chunk, [&](int64_t, int64_t bytes) {
    const Tensor chunk = at::empty({bytes}, at::kByte);
    group.recv(chunk, from).wait();
    file.add(chunk);
  });
  return file.finish();
}

// Sends a file from rank 0 to the ranks that write it, whose `target` is not empty. Returns the reason if
// this rank could not write it.
std::string broadcast_file(Group& group, const std::filesystem::path& source,
                           const std::filesystem::path& target, ProgressBar& bar) {
  std::optional<Source> file;
  std::optional<Target> copy;
  if (group.rank() == 0) file.emplace(source);
  if (!target.empty()) copy.emplace(target);
  Tensor size = at::full({1}, file ? file->size() : 0, at::kLong);
  group.broadcast(size, 0).wait();
  each_chunk(size.item<int64_t>(), broadcast_chunk, [&](int64_t begin, int64_t bytes) {
    const Tensor chunk = file ? file->chunk(begin, bytes) : at::empty({bytes}, at::kByte);
    group.broadcast(chunk, 0).wait();
    if (copy) copy->add(chunk);
    bar.add(bytes);
  });
  return copy ? copy->finish() : file ? file->failure() : "";
}

}  // namespace

std::filesystem::path separate_folder(const std::filesystem::path& folder, int64_t step, int rank) {
  return checkpoint_format::checkpoint_path(folder, step).string() + fmt::format(".of-rank-{}", rank);
}

std::string collect_files(Group& group, const SharedFolder& shared, const std::filesystem::path& file,
                          const std::filesystem::path& folder) {
  std::string failure;
  for (const int rank : shared.ranks_without_access()) {
    const std::string name = group.broadcast_bytes(file.filename().string(), rank);
    if (group.rank() == rank) send_file(group, file);
    if (group.rank() != 0) continue;
    const std::string why = receive_file(group, rank, folder / name);
    if (failure.empty()) failure = why;
  }
  return failure;
}

ReadableCheckpoint::ReadableCheckpoint(Group& group, const std::filesystem::path& checkpoint,
                                       const std::filesystem::path& scratch)
    : group_(group), path_(checkpoint) {
  const SharedFolder shared(group, checkpoint.parent_path());
  if (shared.by_all()) return;
  copied_ = true;
  std::vector<std::string> files;
  int64_t bytes = 0, step = 0;
  if (group.rank() == 0) {
    const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint);
    step = manifest.step;
    for (const auto& [name, file] : manifest.files) {
      files.push_back(name);
      bytes += file.size;
    }
    files.emplace_back(checkpoint_format::manifest_name);
  }
  const nlohmann::json list = nlohmann::json::parse(
      group.broadcast_bytes(nlohmann::json{{"files", files}, {"bytes", bytes}, {"step", step}}.dump(), 0));
  list.at("files").get_to(files);
  const bool separate = !shared.sees(group.rank());
  copied_here_ = separate && shared.receiver_of(group.rank()) == group.rank();
  if (separate) path_ = separate_folder(scratch, list.at("step"), shared.receiver_of(group.rank()));
  std::string failure;
  if (copied_here_) {
    try {
      for (const std::string& name : files) make_folders((path_ / name).parent_path());
    } catch (const IoError& error) {
      failure = error.what();
    }
  }
  if (group.rank() == 0)
    log::info("fetching   {}: {} does not have it", checkpoint.string(),
              shared.place(shared.ranks_without_access()[0]));
  ProgressBar bar("fetching " + checkpoint.string(), list.at("bytes").get<int64_t>(), "bytes");
  for (const std::string& name : files) {
    const std::string why =
        broadcast_file(group, checkpoint / name, copied_here_ ? path_ / name : std::filesystem::path(), bar);
    if (failure.empty()) failure = why;
  }
  const auto failures = group.all_gather_bytes(failure);
  for (size_t rank = 0; rank < failures.size(); ++rank) {
    if (!failures[rank].empty())
      throw IoError("{} cannot be copied to all hosts: rank {}: {}", checkpoint.string(), rank,
                    failures[rank]);
  }
}

ReadableCheckpoint::~ReadableCheckpoint() {
  if (!copied_) return;
  const bool failing = std::uncaught_exceptions() > 0;  // then other ranks may not come
  try {
    if (!failing) group_.barrier();
    if (copied_here_) remove_folder(path_);
  } catch (const std::exception& error) {
    log::warning("{}", error.what());
  }
}

}  // namespace stretto::checkpoint
