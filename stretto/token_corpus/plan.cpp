#include "stretto/token_corpus/plan.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/stat.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/input_file.h"
#include "stretto/base/stream_hash.h"
#include "stretto/base/strings.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/growing_file.h"

namespace stretto::token_corpus {
namespace {

// Identifies a file at a cost that does not depend on its size.
SourceFile source_of(const std::filesystem::path& path) {
  constexpr int64_t sample_bytes = 4096, samples = 32;
  const InputFile file(path);
  StreamHash hash;
  std::string part(static_cast<size_t>(std::min(sample_bytes, file.size())), '\0');
  for (int64_t i = 0; i < samples; ++i) {
    file.read((file.size() - std::ssize(part)) / (samples - 1) * i, part);
    hash.add(part);
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw IoError("cannot read {}: {}", path.string(), std::strerror(errno));
  hash.add({reinterpret_cast<const char*>(&info.st_mtim), sizeof info.st_mtim});
  return {path.string(), file.size(), checksum_text(hash.value())};
}

std::vector<int32_t> ids_behind(const text::Tokenizer& tokenizer, const TokenizeOptions& options) {
  std::vector<int32_t> ids;
  if (options.special_tokens) ids = tokenizer.template_ids().after;
  if (!options.eos) return ids;
  const auto id = options.eos_token ? tokenizer.id(*options.eos_token) : tokenizer.eos_id();
  const std::string name = options.names("eos_token");
  if (!id && options.eos_token) {
    throw ConfigError("{}: the tokenizer has no token \"{}\"; expected one that ends documents", name,
                      *options.eos_token);
  }
  if (!id) {
    throw ConfigError(
        "the tokenizer names no eos_token, with which documents end; set {}, or {} for documents without an end",
        name, options.names("eos"));
  }
  if (ids.empty() || ids.back() != *id) ids.push_back(*id);
  return ids;
}

}  // namespace

Manifest plan_corpus(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                     const TokenizeOptions& options) {
  Manifest manifest;
  manifest.tokenizer = identity_of(tokenizer);
  for (const std::filesystem::path& file : files) manifest.settings.sources.push_back(source_of(file));
  manifest.settings.documents = options.documents;
  if (options.special_tokens) manifest.settings.before = tokenizer.template_ids().before;
  manifest.settings.after = ids_behind(tokenizer, options);
  manifest.settings.tokens_per_shard = options.tokens_per_shard;
  return manifest;
}

namespace {

// Returns the number of files that tokens of the corpus come from; later files may have changed.
size_t files_read(const Manifest& manifest) {
  if (!manifest.next) return manifest.settings.sources.size();
  return manifest.next->file + (manifest.next->offset > 0 ? 1 : 0);
}

}  // namespace

std::string difference(const Manifest& there, const Manifest& here) {
  const CorpusSettings &before = there.settings, &now = here.settings;
  if (there.tokenizer.fingerprint != here.tokenizer.fingerprint)
    return fmt::format("of another tokenizer ({})", describe(there.tokenizer));
  const auto other = [](const char* what, const auto& a, const auto& b) {
    return fmt::format("with {} {} instead of {}", what, a, b);
  };
  const DocumentOptions &a = before.documents, &b = now.documents;
  if (a.rule != b.rule) return other("a document per", name_of(a.rule), name_of(b.rule));
  if (a.keep_newlines != b.keep_newlines)
    return a.keep_newlines ? "with the line ends" : "without the line ends";
  if (a.column != b.column) return other("the column", a.column, b.column);
  if (before.before != now.before || before.after != now.after)
    return "with other special tokens around documents";
  if (before.tokens_per_shard != now.tokens_per_shard)
    return other("a shard size of", before.tokens_per_shard, now.tokens_per_shard);
  const size_t read = files_read(there);
  if (now.sources.size() < read || (!there.next && now.sources.size() > read))
    return fmt::format("of {} instead of {}", counted(std::ssize(before.sources), "file"),
                       now.sources.size());
  for (size_t i = 0; i < read; ++i) {
    const SourceFile &old = before.sources[i], &file = now.sources[i];
    if (old.path != file.path) return other("the file", old.path, file.path);
    if (old != file) return fmt::format("of {} as it was before it was changed", file.path);
  }
  return "";
}

}  // namespace stretto::token_corpus
