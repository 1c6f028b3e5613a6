#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::text {
class Tokenizer;
}

namespace stretto::token_corpus {

class Corpus;

struct TokenizeOptions {
  DocumentOptions documents = {};
  bool special_tokens = true;  // adds the template's tokens to each document, such as <s> at its beginning
  bool eos = true;             // ends each document with the tokenizer's eos_token,
  std::optional<std::string> eos_token = {};  // or with this token
  int threads = 0;                            // 0: one per processor
  int64_t tokens_per_shard = int64_t{1} << 28;
  int64_t save_every =
      int64_t{256} << 20;  // bytes of text between two saves, from which an interrupted run continues
  bool overwrite = false;  // begin again if the folder contains a corpus
  bool wait = false;       // wait for another process that writes the same corpus, instead of throwing
  // called between chunks; if it returns true, progress is saved and tokenizing ends
  std::function<bool()> stop = {};
  OptionNames names = {};  // names of "column", "eos", "eos_token", "overwrite" and "output" in messages
};

// Writes the tokens of `files` as a corpus in the folder `output` (manifest.h), with a progress bar. The
// written bytes depend on files, tokenizer and options, but not on the number of threads or on interruptions:
// an incomplete corpus is continued, a complete one is left unchanged. `tokenizer_path`: the path from which
// the tokenizer was loaded; its files are copied. Returns false if `stop` ended it early. Throws ConfigError
// if the folder contains something else or a corpus of other files, options or another tokenizer, or if the
// tokenizer has no end-of-document token; DataError like DocumentReader and ChunkEncoder; IoError. Progress
// until then is kept.
bool tokenize(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
              const std::filesystem::path& tokenizer_path, const std::filesystem::path& output,
              const TokenizeOptions& options);

// The files of a text: those of a folder that save_to_disk of Hugging Face's datasets wrote, in their order;
// else `path` alone. Throws DataError like columnar::saved_files.
std::vector<std::filesystem::path> text_files(const std::filesystem::path& path);

// Opens the corpus in the folder `path`. If `path` is a text file, or a folder with text_files, it is
// tokenized into a folder in `cache` unless an earlier run has done so. Throws like tokenize(), Corpus() and
// Corpus::require_tokenizer(), and DataError if there is no text. Nothing remains in `cache` of a text file
// that is refused.
std::shared_ptr<const Corpus> open_corpus(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                                          const std::filesystem::path& tokenizer_path,
                                          const std::filesystem::path& cache, TokenizeOptions options = {});

}  // namespace stretto::token_corpus
