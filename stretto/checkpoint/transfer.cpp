#include "stretto/checkpoint/transfer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint_format/folder.h"

namespace stretto::checkpoint {
namespace {

using checkpoint_format::Manifest;
using checkpoint_format::StoredPiece;

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
  // Bytes that are not in the file are zeros, and a failure.
  Tensor chunk(int64_t begin, int64_t bytes) {
    Tensor chunk = at::zeros({bytes}, at::kByte);
    if (begin + bytes <= size()) {
      std::memcpy(chunk.data_ptr(), file_->data() + begin, static_cast<size_t>(bytes));
    } else if (failure_.empty()) {
      failure_ = "it is truncated";
    }
    return chunk;
  }

 private:
  std::optional<MappedFile> file_;
  std::string failure_;
};

// A file that is written in chunks; after a failure the rest is dropped, so that the sender can continue.
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
  // Moves to a position at or after the end of what has been written.
  void move_to(int64_t offset) {
    attempt([&] { file_->skip(offset - file_->size()); });
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
  Source file(path);
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

// The pieces of a checkpoint in the order of their positions in its files.
std::vector<const StoredPiece*> in_order(const Manifest& manifest) {
  std::vector<const StoredPiece*> pieces;
  for (const auto& [name, entry] : manifest.tensors) {
    for (const StoredPiece& piece : entry.pieces) pieces.push_back(&piece);
  }
  std::ranges::sort(pieces, {}, [](const StoredPiece* piece) { return std::tie(piece->file, piece->begin); });
  return pieces;
}

// The copies of one file on other hosts, to which pieces are sent in the order of their positions.
class FileCopies {
 public:
  // `own_copy`: the path of the copy that this rank makes if it receives a piece.
  FileCopies(Group& group, const std::filesystem::path& source, std::filesystem::path own_copy)
      : group_(group), own_copy_(std::move(own_copy)) {
    if (group.rank() == 0) source_.emplace(source);
  }

  // Sends bytes of rank 0's file to `receivers`. Collective, over these and rank 0, or over all ranks if the
  // receivers are `all` of those that make copies.
  void send(const StoredPiece& piece, const std::vector<int>& receivers, bool all) {
    const bool writes = std::ranges::find(receivers, group_.rank()) != receivers.end();
    if (writes && !copy_) copy_.emplace(own_copy_);
    if (writes) copy_->move_to(piece.begin);
    each_chunk(piece.length, message_chunk, [&](int64_t begin, int64_t bytes) {
      Tensor chunk = source_ ? source_->chunk(piece.begin + begin, bytes) : at::empty({bytes}, at::kByte);
      if (all) {
        group_.broadcast(chunk, 0).wait();
      } else if (source_) {
        for (const int receiver : receivers) group_.send(chunk, receiver).wait();
      } else if (writes) {
        group_.recv(chunk, 0).wait();
      }
      if (writes) copy_->add(chunk);
    });
  }

  // Returns the reason if this rank could not read or write the file.
  std::string finish() { return copy_ ? copy_->finish() : source_ ? source_->failure() : ""; }

 private:
  Group& group_;
  const std::filesystem::path own_copy_;
  std::optional<Source> source_;
  std::optional<Target> copy_;
};

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
                                       const std::filesystem::path& scratch,
                                       std::chrono::milliseconds patience)
    : group_(group),
      checkpoint_(checkpoint),
      shared_(group, checkpoint.parent_path(), patience),
      path_(checkpoint) {
  if (shared_.by_all()) {
    manifest_ = checkpoint_format::read_manifest(checkpoint);
    return;
  }
  const std::string place = (checkpoint / checkpoint_format::manifest_name).string();
  const std::string text = group.broadcast_bytes(group.rank() == 0 ? read_if_readable(place) : "", 0);
  manifest_ = checkpoint_format::parse_manifest(text, place);
  pieces_ = in_order(manifest_);
  std::string failure;
  const int receiver = shared_.receiver_of(group.rank());
  copied_here_ = receiver == group.rank();
  if (!shared_.sees(group.rank())) path_ = separate_folder(scratch, manifest_.step, receiver);
  if (copied_here_) {
    try {
      make_folders(path_);
      write_file_atomic(path_ / checkpoint_format::manifest_name, text);
    } catch (const IoError& error) {
      failure = error.what();
    }
  }
  require_success(failure);
}

// For each rank, a byte per piece: whether this rank makes a copy of it for ranks that read it.
std::vector<std::string> ReadableCheckpoint::wanted_by_receivers(const State& state) const {
  std::string wanted;
  if (!shared_.sees(group_.rank())) {
    std::set<const StoredPiece*> read;
    for (const Entry& entry : state.tensors) {
      const auto stored = manifest_.tensors.find(entry.name);
      if (stored == manifest_.tensors.end()) continue;  // load() names it
      for (const StoredPiece* piece : pieces_of(entry, stored->second)) read.insert(piece);
    }
    for (const StoredPiece* piece : pieces_) wanted += read.contains(piece) ? '\1' : '\0';
  }
  std::vector<std::string> copies(static_cast<size_t>(group_.size()));
  const auto by_rank = group_.all_gather_bytes(wanted);
  for (const int rank : shared_.ranks_without_access()) {
    std::string& copy = copies[static_cast<size_t>(shared_.receiver_of(rank))];
    copy.resize(pieces_.size());
    std::ranges::transform(copy, by_rank[static_cast<size_t>(rank)], copy.begin(), std::bit_or<char>());
  }
  return copies;
}

void ReadableCheckpoint::fetch(const State& state) {
  if (shared_.by_all()) return;
  const std::vector<std::string> copies = wanted_by_receivers(state);
  const auto all = std::ranges::count_if(copies, [](const std::string& copy) { return !copy.empty(); });
  std::vector<std::vector<int>> receivers(pieces_.size());
  int64_t bytes = 0, sent = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    bytes += pieces_[i]->length;
    for (int rank = 0; rank < group_.size(); ++rank) {
      const std::string& copy = copies[static_cast<size_t>(rank)];
      if (!copy.empty() && copy[i] != 0) receivers[i].push_back(rank);
    }
    if (!receivers[i].empty()) sent += pieces_[i]->length;
  }
  if (group_.rank() == 0) {
    log::info("fetching   {}: {} does not have it; its ranks read {} of {}", checkpoint_.string(),
              shared_.place(shared_.ranks_without_access()[0]), human_bytes(static_cast<double>(sent)),
              human_bytes(static_cast<double>(bytes)));
  }
  ProgressBar bar("fetching " + checkpoint_.string(), sent, "bytes");
  std::string failure;
  std::optional<FileCopies> file;
  const auto finish_file = [&] {
    if (file && failure.empty()) failure = file->finish();
    file.reset();
  };
  std::string open;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (receivers[i].empty()) continue;
    const StoredPiece& piece = *pieces_[i];
    if (std::exchange(open, piece.file) != piece.file) {
      finish_file();
      file.emplace(group_, checkpoint_ / piece.file, path_ / piece.file);
    }
    file->send(piece, receivers[i], /*all=*/all > 1 && std::ssize(receivers[i]) == all);
    bar.add(piece.length);
  }
  finish_file();
  require_success(failure);
}

void ReadableCheckpoint::require_success(const std::string& failure) const {
  const auto failures = group_.all_gather_bytes(failure);
  for (size_t rank = 0; rank < failures.size(); ++rank) {
    if (!failures[rank].empty()) {
      throw IoError("{} cannot be copied to all hosts: rank {}: {}", checkpoint_.string(), rank,
                    failures[rank]);
    }
  }
}

ReadableCheckpoint::~ReadableCheckpoint() {
  if (shared_.by_all()) return;
  const bool failing = std::uncaught_exceptions() > 0;  // then other ranks may not come
  try {
    if (!failing) group_.barrier();
    if (copied_here_) remove_folder(path_);
  } catch (const std::exception& error) {
    log::warning("{}", error.what());
  }
}

}  // namespace stretto::checkpoint
