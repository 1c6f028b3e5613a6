#include "stretto/token_corpus/corpus.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/stream_hash.h"
#include "stretto/token_corpus/growing_file.h"

namespace stretto::token_corpus {
namespace {

Manifest complete_manifest(const std::filesystem::path& folder) {
  if (!is_corpus(folder)) {
    throw DataError("{}: no token corpus: there is no {}; `stretto data tokenize` makes one", folder.string(),
                    manifest_name);
  }
  Manifest manifest = read_manifest(folder);
  if (!manifest.next) return manifest;
  throw DataError(
      "{}: the corpus is not complete; run the same `stretto data tokenize` command again to continue",
      folder.string());
}

}  // namespace

Corpus::Corpus(std::filesystem::path folder)
    : folder_(std::move(folder)), manifest_(complete_manifest(folder_)) {
  for (size_t i = 0; i < manifest_.shards.size(); ++i)
    shards_.push_back(open(shard_name(i), manifest_.shards[i]));
  index_ = open(documents_name, manifest_.index);
  document_ends_ = {reinterpret_cast<const int64_t*>(index_.data()),
                    static_cast<size_t>(manifest_.documents)};
  if (!document_ends_.empty() && document_ends_.back() != tokens())
    throw DataError(
        "{}: damaged: the last document does not end with the last token; tokenize the text again",
        (folder_ / documents_name).string());
}

MappedFile Corpus::open(const std::string& name, const CheckedFile& expected) const {
  MappedFile file(folder_ / name);
  if (static_cast<int64_t>(file.size()) != expected.bytes) {
    throw DataError("{}: has {} bytes instead of {}; copy the corpus again, or tokenize the text again",
                    (folder_ / name).string(), file.size(), expected.bytes);
  }
  return file;
}

std::string Corpus::fingerprint() const {
  std::string all = manifest_.tokenizer.fingerprint + manifest_.index.checksum;
  for (const CheckedFile& shard : manifest_.shards) all += shard.checksum;
  return hash128_hex(all);
}

void Corpus::require_tokenizer(const text::Tokenizer& tokenizer, const std::string& where) const {
  const TokenizerIdentity other = identity_of(tokenizer);
  if (other.fingerprint == manifest_.tokenizer.fingerprint) return;
  throw ConfigError(
      "{}: its tokens are of another tokenizer ({}) than {} ({}); tokenize the text with that one, or use the tokenizer in {}",
      folder_.string(), describe(manifest_.tokenizer), where, describe(other), this->tokenizer().string());
}

template <class Token>
void Corpus::append(size_t shard, int64_t begin, int64_t end, std::vector<int32_t>& ids) const {
  const auto* tokens = reinterpret_cast<const Token*>(shards_[shard].data());
  const size_t before = ids.size();
  ids.insert(ids.end(), tokens + begin, tokens + end);
  const auto largest = std::max_element(ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
  const bool known = largest == ids.end() ||
                     static_cast<uint32_t>(*largest) < static_cast<uint32_t>(manifest_.tokenizer.vocab_size);
  if (!known) {
    throw DataError(
        "{}: damaged: it holds the id {}, and the tokenizer has {} tokens; `stretto data inspect` can compare its checksums",
        (folder_ / shard_name(shard)).string(), static_cast<uint32_t>(*largest),
        manifest_.tokenizer.vocab_size);
  }
}

void Corpus::read(int64_t begin, int64_t end, std::vector<int32_t>& ids) const {
  const int64_t per_shard = manifest_.settings.tokens_per_shard;
  while (begin < end) {
    const int64_t shard = begin / per_shard, first = shard * per_shard;
    const int64_t last = std::min(end, first + per_shard);
    if (manifest_.token_bytes() == 2) {
      append<uint16_t>(static_cast<size_t>(shard), begin - first, last - first, ids);
    } else {
      append<uint32_t>(static_cast<size_t>(shard), begin - first, last - first, ids);
    }
    begin = last;
  }
}

int64_t Corpus::document_begin(int64_t document) const {
  return document == 0 ? 0 : document_ends_[static_cast<size_t>(document - 1)];
}

int64_t Corpus::document_at(int64_t token) const {
  return std::ranges::upper_bound(document_ends_, token) - document_ends_.begin();
}

void Corpus::check(const std::function<void(int64_t bytes)>& progress) const {
  const auto check_file = [&](const std::string& name, const CheckedFile& expected) {
    StreamHash hash;
    hash_file(folder_ / name, expected.bytes, hash, progress);
    if (expected.bytes == 0 || checksum_text(hash.value()) == expected.checksum) return;
    throw DataError(
        "{}: damaged: its checksum is {} instead of {}; copy the corpus again, or tokenize the text again",
        (folder_ / name).string(), checksum_text(hash.value()), expected.checksum);
  };
  for (size_t i = 0; i < shards_.size(); ++i) check_file(shard_name(i), manifest_.shards[i]);
  check_file(documents_name, manifest_.index);
}

}  // namespace stretto::token_corpus
