#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/token_corpus/documents.h"
#include "stretto/token_corpus/tokenizer_identity.h"

namespace stretto::token_corpus {

// A corpus is a folder:
//   corpus.json           this manifest
//   tokens-00000.bin ...  the tokens of all documents in order, as little-endian uint16 or uint32; all
//                         files but the last have tokens_per_shard tokens
//   documents.bin         for each document one more than the index of its last token, as little-endian int64
//   tokenizer/            the tokenizer's files
inline constexpr const char* manifest_name = "corpus.json";
inline constexpr const char* documents_name = "documents.bin";
inline constexpr const char* tokenizer_folder = "tokenizer";
std::string shard_name(size_t shard);

// The bytes of one token where ids are below `vocab_size`.
inline size_t token_width(int64_t vocab_size) { return vocab_size <= 65536 ? 2 : 4; }

// A file that was read. `sample` is a hash of parts of its content and of its modification time.
struct SourceFile {
  std::string path;
  int64_t bytes = 0;
  std::string sample;
  bool operator==(const SourceFile&) const = default;
};

// The settings that tokens depend on, besides the tokenizer. They must be equal when tokenizing is resumed.
struct CorpusSettings {
  std::vector<SourceFile> sources;
  DocumentOptions documents;
  std::vector<int32_t> before, after;  // the ids before and after each document
  int64_t tokens_per_shard = int64_t{1} << 28;
};

// A file and its expected size and checksum.
struct CheckedFile {
  int64_t bytes = 0;
  std::string checksum;  // XXH3, 64 bits
};

// What a corpus consists of: its file manifest.json.
struct Manifest {
  TokenizerIdentity tokenizer;
  CorpusSettings settings;
  int64_t tokens = 0, documents = 0, empty_documents = 0, text_bytes = 0;
  std::vector<CheckedFile> shards;
  CheckedFile index;
  std::optional<Position> next = Position();  // where tokenizing continues; nullopt: the corpus is complete

  size_t token_bytes() const { return token_width(tokenizer.vocab_size); }
};

// Formats a manifest as the content of its file.
std::string manifest_text(const Manifest& manifest);

// Writes the manifest of a corpus, as a whole or not at all. Throws IoError.
void write_manifest(const Manifest& manifest, const std::filesystem::path& corpus);

// Throws DataError, naming `name`, if the text is damaged or of another version.
Manifest parse_manifest(std::string_view text, const std::string& name);

// Reads the manifest of a corpus. Throws like parse_manifest, and IoError if there is none.
Manifest read_manifest(const std::filesystem::path& corpus);

// Whether a folder has a manifest.
bool is_corpus(const std::filesystem::path& folder);

}  // namespace stretto::token_corpus
