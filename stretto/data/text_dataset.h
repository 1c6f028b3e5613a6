#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/data/dataset.h"
#include "stretto/data/rows.h"

namespace stretto::text {
class Tokenizer;
}

namespace stretto::data {

class FeatureFile;

// A table of texts as token ids, ready to be packed.
class TextDataset : public Dataset {
 public:
  // Tokenises `table`, or maps the file in `cache` that an earlier run wrote; its name is a hash of the
  // texts, the tokenizer and max_length. Encodings are truncated to max_length tokens, including special
  // tokens. Batches are padded to multiples of pad_to_multiple_of tokens. Throws ConfigError if max_length
  // leaves no room for text, DataError if the cached file contains other texts. REQUIRES: pad_to_multiple_of
  // > 0.
  TextDataset(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
              const std::filesystem::path& cache, int64_t pad_to_multiple_of = 1,
              const OptionNames& names = {});
  ~TextDataset() override;

  int64_t size() const override;
  int32_t length_of(int64_t sample) const override;
  // Depends on tokens, tokenizer, labels and the names of the classes.
  std::string fingerprint() const override;
  bool has_labels() const { return has_labels_; }
  const std::vector<int64_t>& labels() const { return labels_; }
  int64_t tokens() const { return total_tokens_; }

  // A packed batch (see Batch), with labels if the table has them: [B] int64 classes, [B] float32 numbers, or
  // [B, C] float32 with 1 for each class of the sample.
  Batch pack(std::span<const int64_t> samples) const override;

 private:
  std::unique_ptr<const FeatureFile> tokens_;  // ids and types per sample
  std::vector<int64_t> labels_;
  Tensor targets_;  // [samples] for a regression, [samples, classes] for multi-label data
  bool has_labels_;
  int64_t pad_to_multiple_of_;
  int64_t total_tokens_ = 0;
  std::string fingerprint_;
};

}  // namespace stretto::data
