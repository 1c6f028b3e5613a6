#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/columnar/saved_files.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/corpus.h"
#include "stretto/token_corpus/plan.h"
#include "stretto/token_corpus/tokenize.h"

namespace stretto::token_corpus {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Corpus> with_text(std::shared_ptr<const Corpus> corpus, const fs::path& path) {
  if (corpus->tokens() == 0) throw DataError("{}: there is no text in it", path.string());
  return corpus;
}

// Removes a folder that a text was to be tokenized into, and those above it that are empty then and that were
// not there before it.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& folder) : folder_(fs::absolute(folder)) {
    for (fs::path path = folder_; !fs::exists(path); path = path.parent_path()) made_.push_back(path);
  }

  void remove() const {
    std::error_code ignored;
    if (made_.empty()) return;
    fs::remove_all(folder_, ignored);
    for (const fs::path& path : made_) fs::remove(path, ignored);  // does nothing to one that is not empty
  }

 private:
  fs::path folder_;
  std::vector<fs::path> made_;  // the inner ones first
};

}  // namespace

std::vector<fs::path> text_files(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  auto files = columnar::saved_files(path);
  if (files.empty()) files.push_back(path);
  return files;
}

std::shared_ptr<const Corpus> open_corpus(const fs::path& path, const text::Tokenizer& tokenizer,
                                          const fs::path& tokenizer_path, const fs::path& cache,
                                          TokenizeOptions options) {
  const std::vector<fs::path> files = text_files(path);
  if (fs::is_directory(files.front())) {
    auto corpus = std::make_shared<const Corpus>(path);
    corpus->require_tokenizer(tokenizer, tokenizer_path.string());
    return with_text(std::move(corpus), path);
  }
  const fs::path folder =
      cache / (hash128_hex(manifest_text(plan_corpus(files, tokenizer, options))) + ".corpus");
  options.wait = true;
  const NewFolder made(folder);
  try {
    if (tokenize(files, tokenizer, tokenizer_path, folder, options))
      return with_text(std::make_shared<const Corpus>(folder), path);
  } catch (const IoError&) {
    throw;  // what was written is kept, and the same command continues
  } catch (const Error&) {
    made.remove();
    throw;
  }
  throw Error("{}: stopped before all of it was tokenized", path.string());
}

}  // namespace stretto::token_corpus
