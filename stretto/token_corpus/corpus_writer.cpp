#include "stretto/token_corpus/corpus_writer.h"

#include <algorithm>

#include "stretto/base/input_file.h"

namespace stretto::token_corpus {
namespace {

int64_t shard_bytes(const Manifest& manifest) {
  return manifest.settings.tokens_per_shard * static_cast<int64_t>(manifest.token_bytes());
}

// The end of the last document in an index.
int64_t last_end(const std::filesystem::path& index, int64_t bytes) {
  int64_t end = 0;
  if (bytes > 0) InputFile(index).read(bytes - 8, {reinterpret_cast<char*>(&end), sizeof end});
  return end;
}

}  // namespace

CorpusWriter::CorpusWriter(std::filesystem::path folder, Manifest manifest)
    : folder_(std::move(folder)),
      manifest_(std::move(manifest)),
      index_(folder_ / documents_name, manifest_.index),
      last_end_(last_end(folder_ / documents_name, manifest_.index.bytes)) {
  const bool has_open_shard =
      !manifest_.shards.empty() && manifest_.shards.back().bytes < shard_bytes(manifest_);
  if (has_open_shard) open_shard();
  // Shards that an interrupted run began after its last save are not part of the corpus.
  for (size_t next = manifest_.shards.size(); std::filesystem::remove(folder_ / shard_name(next)); ++next) {
  }
}

void CorpusWriter::open_shard() {
  shard_.emplace(folder_ / shard_name(manifest_.shards.size() - 1), manifest_.shards.back());
}

void CorpusWriter::append_tokens(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!shard_) {
      manifest_.shards.emplace_back();
      open_shard();
    }
    const auto room = static_cast<size_t>(shard_bytes(manifest_) - shard_->bytes());
    const size_t size = std::min(bytes.size(), room);
    shard_->write(bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (size < room) continue;
    shard_->sync();
    manifest_.shards.back() = shard_->state();
    shard_.reset();
  }
}

void CorpusWriter::append(const EncodedChunk& chunk) {
  append_tokens(chunk.bytes);
  std::vector<int64_t> ends;
  manifest_.empty_documents += chunk.empty_documents;
  for (const int64_t in_chunk : chunk.document_ends) {
    const int64_t end = manifest_.tokens + in_chunk;
    if (end == last_end_) {  // a text without tokens, for example of spaces only
      ++manifest_.empty_documents;
    } else {
      ends.push_back(last_end_ = end);
    }
  }
  index_.write({reinterpret_cast<const char*>(ends.data()), ends.size() * sizeof(int64_t)});
  manifest_.documents += std::ssize(ends);
  manifest_.tokens += chunk.tokens;
  manifest_.text_bytes += chunk.text_bytes;
  manifest_.next = chunk.end;
}

void CorpusWriter::save() {
  if (shard_) {
    shard_->sync();
    manifest_.shards.back() = shard_->state();
  }
  index_.sync();
  manifest_.index = index_.state();
  write_manifest(manifest_, folder_);
}

void CorpusWriter::finish() {
  manifest_.next.reset();
  save();
}

}  // namespace stretto::token_corpus
