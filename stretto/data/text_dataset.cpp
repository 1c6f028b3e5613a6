#include "stretto/data/text_dataset.h"

#include <algorithm>
#include <chrono>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/data/packing.h"

namespace stretto::data {
namespace {

std::string cache_key(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length) {
  std::vector<uint64_t> parts = {hash64(tokenizer.fingerprint()), static_cast<uint64_t>(max_length),
                                 table.has_pairs};
  for (const TextRow& row : table.rows) {
    parts.push_back(hash64(row.text));
    if (table.has_pairs) parts.push_back(hash64(row.text_pair));
  }
  return hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

void tokenize(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
              const std::filesystem::path& path) {
  const auto start = std::chrono::steady_clock::now();
  ProgressBar bar("tokenising " + table.name, std::ssize(table.rows), "texts");
  const text::EncodeOptions options = {.special_tokens = true, .max_length = static_cast<size_t>(max_length)};
  TokenFile::write(path, std::ssize(table.rows),
                   [&](int64_t sample, std::vector<int32_t>& ids, std::vector<uint8_t>& types) {
                     bar.add();
                     const TextRow& row = table.rows[static_cast<size_t>(sample)];
                     const text::Encoding encoding =
                         table.has_pairs ? tokenizer.encode_pair(row.text, row.text_pair, options)
                                         : tokenizer.encode(row.text, options);
                     if (encoding.ids.empty()) {
                       throw DataError("{}:{}: the text gives no token at all", table.name, row.line);
                     }
                     ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end());
                     types.insert(types.end(), encoding.type_ids.begin(), encoding.type_ids.end());
                   });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  log::info("tokenised {} ({} texts) in {}", table.name, table.rows.size(), human_duration(took.count()));
}

std::filesystem::path cached_tokens(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
                                    const std::filesystem::path& cache) {
  const std::filesystem::path path = cache / (cache_key(table, tokenizer, max_length) + ".tokens");
  std::error_code unreadable;  // opening it will report what is wrong
  if (!std::filesystem::exists(path, unreadable) && !unreadable) {
    make_folders(cache);
    tokenize(table, tokenizer, max_length, path);
  }
  return path;
}

// The tokenizer is part of it: where it assigns other words to the same ids, the ids alone would not differ.
std::string fingerprint_of(const TokenFile& tokens, const text::Tokenizer& tokenizer, const LabelSet& labels,
                           const std::vector<int64_t>& label_ids, const Tensor& targets) {
  std::vector<uint64_t> parts = {
      tokens.checksum(), hash64(tokenizer.fingerprint()),
      hash64({reinterpret_cast<const char*>(label_ids.data()), label_ids.size() * sizeof(int64_t)})};
  for (const std::string& name : labels.names()) parts.push_back(hash64(name));
  if (targets.defined())
    parts.push_back(hash64({static_cast<const char*>(targets.const_data_ptr()), targets.nbytes()}));
  return hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

Tensor targets_of(const Table& table) {
  if (table.kind == LabelKind::one_class || !table.has_labels) return {};
  const int64_t width = std::ssize(table.rows.front().targets);
  Tensor targets = at::empty({std::ssize(table.rows), width}, at::kFloat);
  float* next = targets.data_ptr<float>();
  for (const TextRow& row : table.rows) next = std::copy(row.targets.begin(), row.targets.end(), next);
  return table.kind == LabelKind::number ? targets.squeeze(1) : targets;
}

// Encodings cut to the special tokens alone would train on no text at all.
void require_room_for_text(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length) {
  const text::EncodeOptions options = {.special_tokens = true, .max_length = 1 << 20};
  const auto encoding =
      table.has_pairs ? tokenizer.encode_pair("", "", options) : tokenizer.encode("", options);
  const int64_t least = std::ssize(encoding.ids) + (table.has_pairs ? 2 : 1);
  if (max_length >= least) return;
  throw ConfigError(
      "data.max_length is {}, of which {} are special tokens: no token of {} is left; set it to at least {}, usual are 64 to 512",
      max_length, encoding.ids.size(), table.has_pairs ? "both texts" : "the text", least);
}

// The file's name is a hash of the texts, which anybody may give to another file.
void require_tokens_of(const Table& table, const text::Tokenizer& tokenizer, const TokenFile& tokens,
                       const std::filesystem::path& cache) {
  if (tokens.size() == std::ssize(table.rows) && tokens.largest_id() < tokenizer.vocab_size()) return;
  throw DataError(
      "{}: the cached tokens of {} are not those of its texts ({} samples, ids up to {}; expected {} samples, ids below {}); delete the folder, the next run writes it again",
      cache.string(), table.name, tokens.size(), tokens.largest_id(), table.rows.size(),
      tokenizer.vocab_size());
}

}  // namespace

TextDataset::TextDataset(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
                         const std::filesystem::path& cache, int64_t pad_to_multiple_of)
    : tokens_((require_room_for_text(table, tokenizer, max_length),
               cached_tokens(table, tokenizer, max_length, cache))),
      has_labels_(table.has_labels),
      pad_to_multiple_of_(pad_to_multiple_of) {
  require_tokens_of(table, tokenizer, tokens_, cache);
  for (int64_t sample = 0; sample < size(); ++sample) {
    lengths_.push_back(static_cast<int32_t>(tokens_.ids(sample).size()));
    total_tokens_ += lengths_.back();
  }
  for (const TextRow& row : table.rows) labels_.push_back(row.label);
  targets_ = targets_of(table);
  fingerprint_ = fingerprint_of(tokens_, tokenizer, table.labels, labels_, targets_);
}

std::string TextDataset::fingerprint() const { return fingerprint_; }

Batch TextDataset::pack(std::span<const int64_t> samples) const {
  std::vector<TokenSequence> sequences;
  for (const int64_t sample : samples)
    sequences.push_back({tokens_.ids(sample), tokens_.types(sample), sample});
  Batch batch = pack_sequences(sequences, pad_to_multiple_of_);
  if (!has_labels_ || samples.empty()) return batch;
  if (targets_.defined()) {
    const auto rows = at::tensor(at::IntArrayRef(samples.data(), samples.size()), at::kLong);
    batch.tensors["labels"] = targets_.index_select(0, rows);
    return batch;
  }
  const Tensor labels = at::empty({batch.count}, at::kLong);
  for (int64_t i = 0; i < batch.count; ++i)
    labels.data_ptr<int64_t>()[i] = labels_[static_cast<size_t>(samples[static_cast<size_t>(i)])];
  batch.tensors["labels"] = labels;
  return batch;
}

}  // namespace stretto::data
