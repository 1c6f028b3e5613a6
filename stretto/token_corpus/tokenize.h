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
  bool special_tokens =
      true;         // each document has what the tokenizer's template adds, such as <s> in front of it
  bool eos = true;  // and ends with the tokenizer's eos_token
  std::optional<std::string> eos_token = {};  // or with this one
  int threads = 0;                            // 0: one per processor
  int64_t tokens_per_shard = int64_t{1} << 28;
  int64_t save_every =
      int64_t{256} << 20;           // bytes of text between two points from which an interrupted run goes on
  bool overwrite = false;           // begin again where the folder holds a corpus
  bool wait = false;                // for another process that writes the same corpus, instead of failing
  std::function<bool()> stop = {};  // asked between chunks; true: save and end
  OptionNames names = {};           // of "column", "eos", "eos_token", "overwrite" and "output"
};

// Writes the tokens of `files` as a corpus in the folder `output` (manifest.h), with a progress bar. The
// bytes written depend on files, tokenizer and options, not on the number of threads or on interruptions: a
// corpus that is not complete is gone on with, a complete one is left as it is. `tokenizer_path`: where the
// tokenizer was read from; its files are copied. Returns false where `stop` ended it before the end. Throws
// ConfigError where the folder holds something else, or a corpus of other files, options or another
// tokenizer, or where the tokenizer names no end of documents; DataError as DocumentReader and ChunkEncoder
// do; IoError. What was written until then is kept.
bool tokenize(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
              const std::filesystem::path& tokenizer_path, const std::filesystem::path& output,
              const TokenizeOptions& options);

// The corpus in the folder `path`; or that of the text file `path`, which is tokenized into a folder in
// `cache` unless an earlier run has done so. Throws as tokenize(), Corpus() and Corpus::require_tokenizer().
std::shared_ptr<const Corpus> open_corpus(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                                          const std::filesystem::path& tokenizer_path,
                                          const std::filesystem::path& cache, TokenizeOptions options = {});

}  // namespace stretto::token_corpus
