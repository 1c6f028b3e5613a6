#include "stretto/checkpoint/writer.h"

#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/checkpoint/transfer.h"
#include "stretto/tensor/file_memory.h"
#include "stretto/tensor/safetensors.h"

namespace stretto::checkpoint {
namespace {

// A rank's part of the manifest as text, or the reason why it is missing.
constexpr char part_mark = '+';
constexpr char error_mark = '-';

std::string file_of(int rank) { return fmt::format("rank-{:05}.safetensors", rank); }

// Adds the pieces that one rank lists and has written to the manifest.
void merge(checkpoint_format::Manifest& whole, const checkpoint_format::Manifest& part) {
  whole.files.insert(part.files.begin(), part.files.end());
  for (const auto& [name, entry] : part.tensors) {
    auto& merged = whole.tensors.try_emplace(name, entry.dtype, entry.shape).first->second;
    if (merged.dtype != entry.dtype || merged.shape != entry.shape) {
      throw DataError("tensor {} is {} [{}] on one rank and {} [{}] on another", name, merged.dtype,
                      fmt::join(merged.shape, ", "), entry.dtype, fmt::join(entry.shape, ", "));
    }
    merged.pieces.insert(merged.pieces.end(), entry.pieces.begin(), entry.pieces.end());
  }
}

// If it cannot be removed now, the next Writer of the folder removes it.
void discard(const std::filesystem::path& partial) {
  try {
    remove_folder(partial);
  } catch (const IoError& error) {
    log::warning("{}", error.what());
  }
}

// The paths, relative to the folder, of the files that the manifest does not list.
std::vector<std::filesystem::path> unlisted(const std::filesystem::path& folder,
                                            const checkpoint_format::Manifest& manifest) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto path = entry.path().lexically_relative(folder);
    if (entry.is_regular_file() && !manifest.files.contains(path)) paths.push_back(path);
  }
  return paths;
}

// A checkpoint without these files can be resumed, so a failure does not prevent it.
void add_companions(const std::filesystem::path& folder,
                    const std::function<void(const std::filesystem::path&)>& write,
                    checkpoint_format::Manifest& manifest) {
  try {
    write(folder);
  } catch (const std::exception& error) {
    log::warning("the checkpoint of step {} lacks the tokenizer and other files of the model: {}",
                 manifest.step, error.what());
    for (const auto& path : unlisted(folder, manifest)) std::filesystem::remove(folder / path);
  }
  for (const auto& path : unlisted(folder, manifest)) {
    const MappedFile file(folder / path);
    const auto size = static_cast<int64_t>(file.size());
    manifest.files[path] = {.size = size, .header_length = size, .header_checksum = hash64(file.text())};
  }
}

// Returns the files of interrupted saves of a rank on a host without rank 0's folder.
void remove_own_leftovers(const std::filesystem::path& folder, int rank) {
  for (const auto& path : checkpoint_format::list_partial(folder))
    if (path.string().ends_with(fmt::format(".of-rank-{}", rank))) discard(path);
}

// Memory for a snapshot: in a file if there is a folder with room for it. A failed allocation must not end a
// run.
Tensor snapshot_memory(int64_t bytes, const std::filesystem::path& folder, bool& in_file) {
  in_file = false;
  if (folder.empty()) return at::empty({bytes}, at::kByte);
  try {
    const Tensor memory = file_memory(folder, bytes, at::kByte);
    in_file = bytes > 0;
    return memory;
  } catch (const IoError& error) {
    log::warning("{}; the copy for the checkpoint is in memory instead", error.what());
    return at::empty({bytes}, at::kByte);
  }
}

// Copies the pieces into one reused buffer and makes them refer to it.
void take_snapshot(std::vector<OwnedPiece>& pieces, Tensor& buffer, const std::filesystem::path& folder,
                   bool& in_file) {
  constexpr int64_t alignment = 64;
  const auto padded = [](const Tensor& data) {
    return (static_cast<int64_t>(data.nbytes()) + alignment - 1) / alignment * alignment;
  };
  const int64_t bytes =
      std::accumulate(pieces.begin(), pieces.end(), int64_t{0},
                      [&](int64_t sum, const auto& piece) { return sum + padded(piece.data); });
  if (!buffer.defined() || buffer.numel() < bytes) buffer = snapshot_memory(bytes, folder, in_file);
  int64_t begin = 0;
  for (OwnedPiece& piece : pieces) {
    const Tensor copy =
        buffer.slice(0, begin, begin + static_cast<int64_t>(piece.data.nbytes())).view(piece.dtype);
    copy.copy_(piece.data.detach().reshape({-1}));
    begin += padded(piece.data);
    piece.data = copy;
  }
}

}  // namespace

struct Writer::Job {
  std::vector<OwnedPiece> pieces;
  std::map<std::string, checkpoint_format::StoredEntry> listed;  // this rank's table, without pieces
  checkpoint_format::Manifest manifest;                          // without files and tensors
  std::filesystem::path partial;
};

Writer::Writer(Group& group, WriterOptions options) : group_(group), options_(std::move(options)) {
  std::vector<int> all(static_cast<size_t>(group.size()));
  std::iota(all.begin(), all.end(), 0);
  background_group_ = group.subgroup(all, "checkpoint");
  prepare();
}

// Returns the reason why rank 0 cannot use the folder, else "". Collective.
std::string Writer::prepare() {
  if (shared_) return "";
  std::string failure;
  if (group_.rank() == 0) {
    try {
      make_folders(options_.folder);
      checkpoint_format::remove_partial(options_.folder);
    } catch (const std::exception& error) {
      failure = fmt::format("rank 0: {}", error.what());
    }
  }
  failure = group_.broadcast_bytes(failure, 0);
  if (!failure.empty()) return failure;
  shared_.emplace(group_, options_.folder, options_.patience);
  if (!shared_->by_all() && group_.rank() == 0) {
    log::info("checkpoints are kept in {}; ranks that do not see it, such as rank {} ({}), send theirs there",
              shared_->place(0), shared_->ranks_without_access()[0],
              shared_->place(shared_->ranks_without_access()[0]));
  }
  if (!shared_->sees(group_.rank())) remove_own_leftovers(options_.folder, group_.rank());
  return "";
}

Writer::~Writer() {
  if (thread_.joinable()) thread_.join();
}

std::string Writer::finish() {
  if (thread_.joinable()) thread_.join();
  return error_;
}

bool Writer::save(const State& state, int64_t step, std::optional<checkpoint_format::Score> score) {
  if (!options_.wait_when_busy) {
    // Rank 0 decides for all.
    const std::string busy = group_.broadcast_bytes(busy_ ? "busy" : "", 0);
    if (!busy.empty()) {
      log::warning("no checkpoint of step {}: the one of step {} is still being written", step, last_step_);
      return false;
    }
  }
  finish();
  last_step_ = step;
  error_ = prepare();
  if (!error_.empty()) {
    log_failure(step);
    return true;
  }
  at::NoGradGuard no_grad;
  auto job = std::make_shared<Job>();
  job->pieces = owned_pieces(state);
  for (const Entry& entry : state.tensors)
    job->listed[entry.name] = {safetensors_dtype(entry.dtype), entry.shape, {}};
  job->manifest.step = step;
  job->manifest.world_size = group_.size();
  job->manifest.score = std::move(score);
  job->manifest.scalars = state.scalars;
  job->partial = shared_->sees(group_.rank()) ? checkpoint_format::partial_path(options_.folder, step)
                                              : separate_folder(options_.folder, step, group_.rank());
  if (!options_.background) {
    write(*job);
    return true;
  }
  take_snapshot(job->pieces, snapshot_, options_.snapshot_folder, snapshot_in_file_);
  if (snapshot_in_file_) leave_to_file(snapshot_);
  busy_ = true;
  thread_ = std::thread([this, job] {
    write(*job);
    if (snapshot_in_file_) leave_to_file(snapshot_);
    busy_ = false;
  });
  return true;
}

void Writer::write(Job& job) {
  try {
    error_ = write_and_commit(job);
  } catch (const std::exception& error) {  // a peer has failed
    error_ = error.what();
  }
  if (!error_.empty()) log_failure(job.manifest.step);
}

void Writer::log_failure(int64_t step) const {
  log::error("the checkpoint of step {} was not saved: {}", step, error_);
}

std::string Writer::write_and_commit(Job& job) {
  const int rank = background_group_->rank();
  std::string part;
  try {
    make_folders(job.partial);
    auto written = write_rank_file(job.partial / file_of(rank), job.pieces);
    written.tensors.merge(job.listed);  // pieces that others should write, so that missing ones are detected
    part = part_mark + checkpoint_format::to_text(written);
  } catch (const std::exception& error) {
    part = fmt::format("{}rank {}: {}", error_mark, rank, error.what());
  }
  const auto parts = background_group_->all_gather_bytes(part);
  std::string failure = collect(job, parts);
  if (rank == 0 && failure.empty()) failure = commit(job, parts);
  if (rank == 0 && !failure.empty()) discard(job.partial);
  failure = background_group_->broadcast_bytes(failure, 0);
  if (!shared_->sees(rank)) discard(job.partial);
  return failure;
}

// Returns, on rank 0, the reason why files of other hosts are missing.
std::string Writer::collect(Job& job, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (part.front() == error_mark) return part.substr(1);
  return collect_files(*background_group_, *shared_, job.partial / file_of(background_group_->rank()),
                       job.partial);
}

std::string Writer::commit(Job& job, const std::vector<std::string>& parts) {
  try {
    for (const std::string& part : parts)
      merge(job.manifest, checkpoint_format::parse_manifest(part.substr(1), "a rank's part"));
    checkpoint_format::require_complete(job.manifest, "the state of all ranks");
    if (options_.write_companions) add_companions(job.partial, options_.write_companions, job.manifest);
    write_file_atomic(job.partial / checkpoint_format::manifest_name,
                      checkpoint_format::to_text(job.manifest));
    replace_folder(job.partial, checkpoint_format::checkpoint_path(options_.folder, job.manifest.step));
  } catch (const std::exception& error) {
    return error.what();
  }
  remove_superseded(job.manifest.step);
  return "";
}

// Call it only after a commit. Checkpoints of later steps are not this run's (damaged ones that it did not
// resume from): they are neither removed nor counted, because otherwise the one just committed could be
// removed. A failure is logged.
void Writer::remove_superseded(int64_t step) {
  try {
    auto checkpoints = checkpoint_format::list_checkpoints(options_.folder);
    std::erase_if(checkpoints,
                  [&](const checkpoint_format::Checkpoint& checkpoint) { return checkpoint.step > step; });
    for (const auto& old : checkpoint_format::superseded(checkpoints, options_.retention))
      checkpoint_format::remove(old);
  } catch (const std::exception& error) {
    log::warning("an old checkpoint could not be removed: {}", error.what());
  }
}

}  // namespace stretto::checkpoint
