#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/corpus.h"
#include "stretto/token_corpus/plan.h"
#include "stretto/token_corpus/tokenize.h"

namespace stretto::token_corpus {

std::shared_ptr<const Corpus> open_corpus(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                                          const std::filesystem::path& tokenizer_path,
                                          const std::filesystem::path& cache, TokenizeOptions options) {
  if (std::filesystem::is_directory(path)) {
    auto corpus = std::make_shared<const Corpus>(path);
    corpus->require_tokenizer(tokenizer, tokenizer_path.string());
    return corpus;
  }
  const std::filesystem::path folder =
      cache / (hash128_hex(manifest_text(plan_corpus({path}, tokenizer, options))) + ".corpus");
  options.wait = true;
  if (!tokenize({path}, tokenizer, tokenizer_path, folder, options))
    throw Error("{}: stopped before all of it was tokenized", path.string());
  return std::make_shared<const Corpus>(folder);
}

}  // namespace stretto::token_corpus
