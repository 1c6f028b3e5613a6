#include "stretto/token_corpus/tokenize.h"

#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <sys/file.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/base/temporary_name.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/byte_stream.h"
#include "stretto/token_corpus/corpus_writer.h"
#include "stretto/token_corpus/ordered_work.h"
#include "stretto/token_corpus/plan.h"

namespace stretto::token_corpus {
namespace {

namespace fs = std::filesystem;

// The output folder, locked by this process.
class OutputFolder {
 public:
  OutputFolder(const fs::path& folder, bool wait) {
    make_folders(folder);
    fd_ = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd_) throw IoError("cannot open {}: {}", folder.string(), std::strerror(errno));
    if (::flock(fd_.get(), wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw ConfigError("another process is writing into {}; wait for its end, or choose another output",
                        folder.string());
  }

 private:
  Fd fd_;
};

// Removes a corpus. The manifest is removed last: without it the folder would not be recognised as a corpus.
void remove_corpus(const fs::path& folder) {
  for (size_t shard = 0; fs::remove(folder / shard_name(shard)); ++shard) {
  }
  fs::remove(folder / documents_name);
  remove_folder(folder / tokenizer_folder);
  fs::remove(folder / manifest_name);
}

// Returns the manifest of the interrupted corpus that is continued.
Manifest resume(const Manifest& fresh, const fs::path& output, const TokenizeOptions& options) {
  Manifest there = read_manifest(output);
  const std::string other = difference(there, fresh);
  if (!other.empty()) {
    throw ConfigError("{}: holds a corpus {}; set {} to replace it, or choose another {}", output.string(),
                      other, options.names("overwrite"), options.names("output"));
  }
  if (!there.next) return there;
  there.settings.sources = fresh.settings.sources;
  if (there.text_bytes > 0)
    log::info("{}: going on after {} of text", output.string(),
              human_bytes(static_cast<double>(there.text_bytes)));
  return there;
}

Manifest begin_or_resume(const Manifest& fresh, const fs::path& output, const TokenizeOptions& options) {
  remove_abandoned(output);  // left by a process that died while it wrote the manifest
  if (is_corpus(output) && !options.overwrite) return resume(fresh, output, options);
  if (is_corpus(output)) remove_corpus(output);
  if (!fs::is_empty(output)) {
    throw ConfigError("{}: the folder holds files that are no corpus; choose another {}", output.string(),
                      options.names("output"));
  }
  write_manifest(fresh, output);
  return fresh;
}

void keep_tokenizer(const text::Tokenizer& tokenizer, const fs::path& path, const fs::path& output) {
  const fs::path folder = output / tokenizer_folder;
  if (fs::exists(folder / "tokenizer_config.json")) return;  // it is written last
  make_folders(folder);
  text::copy_tokenizer(path, tokenizer.lowercase(), folder);
}

int64_t bytes_of(const std::vector<SourceFile>& sources) {
  int64_t bytes = 0;
  for (const SourceFile& source : sources) bytes += source.bytes;
  return bytes;
}

// Encodes and appends chunks until all are done or `stop` returns true. Returns false if it was stopped.
bool write_all(DocumentReader& reader, OrderedWork<Chunk, EncodedChunk>& work, size_t most_in_work,
               CorpusWriter& writer, const TokenizeOptions& options) {
  ProgressBar bar("tokenizing", bytes_of(writer.manifest().settings.sources), "bytes", reader.file_bytes());
  int64_t shown = reader.file_bytes(), saved = writer.manifest().text_bytes;
  std::exception_ptr unreadable;  // chunks before the unreadable one are written first
  for (bool more = true; true;) {
    if (options.stop && options.stop()) return false;
    while (more && work.size() < most_in_work) {
      Chunk chunk;
      try {
        more = reader.next(chunk);
      } catch (const Error&) {
        unreadable = std::current_exception();
        more = false;
      }
      if (more) work.put(std::move(chunk));
    }
    if (work.size() == 0 && unreadable) std::rethrow_exception(unreadable);
    if (work.size() == 0) return true;
    const EncodedChunk encoded = work.take();
    writer.append(encoded);
    bar.add(encoded.file_bytes - shown);
    shown = encoded.file_bytes;
    if (writer.manifest().text_bytes - saved < options.save_every) continue;
    writer.save();
    saved = writer.manifest().text_bytes;
  }
}

void report(const Manifest& manifest, const fs::path& output, int64_t new_bytes, double seconds) {
  log::info(
      "{}: {}, {}, {} of text ({:.2f} bytes per token), {} in {} ({}/s)", output.string(),
      counted(manifest.documents, "document"), counted(manifest.tokens, "token"),
      human_bytes(static_cast<double>(manifest.text_bytes)),
      static_cast<double>(manifest.text_bytes) / static_cast<double>(std::max<int64_t>(1, manifest.tokens)),
      human_bytes(static_cast<double>(new_bytes)), human_duration(seconds),
      human_bytes(static_cast<double>(new_bytes) / std::max(seconds, 1e-9)));
  if (manifest.empty_documents > 0)
    log::info("{}: left out {} without text", output.string(), counted(manifest.empty_documents, "document"));
}

}  // namespace

bool tokenize(const std::vector<fs::path>& files, const text::Tokenizer& tokenizer,
              const fs::path& tokenizer_path, const fs::path& output, const TokenizeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Manifest fresh = plan_corpus(files, tokenizer, options);
  for (const fs::path& file : files)
    ByteStream::open(file, options.documents.column);  // throws before there is a folder
  const OutputFolder reserved(output, options.wait);
  const Manifest begun = begin_or_resume(fresh, output, options);
  if (!begun.next) {
    log::info("{}: complete already", output.string());
    return true;
  }
  keep_tokenizer(tokenizer, tokenizer_path, output);
  CorpusWriter writer(output, begun);
  DocumentReader reader(files, options.documents, tokenizer.reads_in_parts(), *begun.next);
  const int processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : processors;
  const text::TemplateIds around = {begun.settings.before, begun.settings.after};
  OrderedWork<Chunk, EncodedChunk> work(threads, [&]() -> OrderedWork<Chunk, EncodedChunk>::Worker {
    const auto encoder =
        std::make_shared<ChunkEncoder>(tokenizer, around, options.documents.column, files, options.names);
    return [encoder](const Chunk& chunk) { return encoder->encode(chunk); };
  });
  try {
    const bool done =
        write_all(reader, work, threads > 1 ? 2 * static_cast<size_t>(threads) : 1, writer, options);
    if (done) {
      writer.finish();
    } else {
      writer.save();
    }
    report(writer.manifest(), output, writer.manifest().text_bytes - begun.text_bytes, seconds_since(start));
    return done;
  } catch (const DataError&) {  // an error in a document: the documents before it are kept
    writer.save();
    throw;
  }
}

}  // namespace stretto::token_corpus
