#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "stretto/data/rows.h"
#include "stretto/data/token_file.h"
#include "stretto/tensor/batch.h"
#include "stretto/text/tokenizer.h"

namespace stretto::data {

// A table of texts as token ids, ready to be packed.
class TextDataset {
 public:
  // Tokenises `table`, or maps what an earlier run left in `cache`, where the file's name is a hash of the texts, the
  // tokenizer and max_length. Encodings are cut at max_length tokens, special ones included.
  TextDataset(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
              const std::filesystem::path& cache);

  int64_t size() const { return tokens_.size(); }
  std::span<const int32_t> lengths() const { return lengths_; }  // tokens of each sample
  bool has_labels() const { return has_labels_; }
  const std::vector<int64_t>& labels() const { return labels_; }
  int64_t tokens() const { return total_tokens_; }

  // The samples as one packed batch on CPU (see Batch), with labels where the table has them. An empty list gives a batch
  // without tensors and count 0.
  Batch pack(std::span<const int64_t> samples) const;

 private:
  TokenFile tokens_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> labels_;
  bool has_labels_;
  int64_t total_tokens_ = 0;
};

}  // namespace stretto::data
