#include "stretto/data/text_dataset.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/stream_hash.h"
#include "stretto/base/strings.h"
#include "stretto/data/feature_file.h"
#include "stretto/data/features/texts.h"
#include "stretto/data/packing.h"
#include "stretto/text/tokenizer.h"

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

// `second` if the texts of a table are pairs.
std::optional<std::string_view> if_pairs(const Table& table, std::string_view second) {
  return table.has_pairs ? std::optional(second) : std::nullopt;
}

constexpr int64_t ids_row = 0, types_row = 1, rows_of_texts = 2;

FeatureFile cached_tokens(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
                          const std::filesystem::path& cache) {
  return FeatureFile::cached(
      cache / (cache_key(table, tokenizer, max_length) + ".texts"), rows_of_texts, std::ssize(table.rows),
      {table.name, "texts"}, [&](int64_t sample, FeatureRows& samples) {
        const TextRow& row = table.rows[static_cast<size_t>(sample)];
        const text::Encoding encoding =
            text_tokens(tokenizer, row.text, if_pairs(table, row.text_pair), max_length);
        if (encoding.ids.empty())
          throw DataError("{}:{}: the text gives no token at all", table.name, row.line);
        samples.add({encoding.ids, encoding.type_ids});
      });
}

// Checkpoints identify the texts of their run by this hash of the begin of each sample (int64), all ids
// (int32) and all types (uint8), independent of the format of the cache.
uint64_t checksum_of(const FeatureFile& tokens) {
  StreamHash hash;
  const auto add = [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    hash.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  std::vector<int64_t> begins = {0};
  for (int64_t sample = 0; sample < tokens.size(); ++sample)
    begins.push_back(begins.back() + std::ssize(tokens.row(sample, ids_row)));
  add(begins);
  for (int64_t sample = 0; sample < tokens.size(); ++sample) add(tokens.row(sample, ids_row));
  for (int64_t sample = 0; sample < tokens.size(); ++sample) {
    const auto row = tokens.row(sample, types_row);
    add(std::vector<uint8_t>(row.begin(), row.end()));
  }
  return hash.value();
}

// The fingerprint includes the tokenizer: one that assigns other words to the same ids would give the same
// ids.
std::string fingerprint_of(const FeatureFile& tokens, const text::Tokenizer& tokenizer,
                           const LabelSet& labels, const std::vector<int64_t>& label_ids,
                           const Tensor& targets) {
  std::vector<uint64_t> parts = {
      checksum_of(tokens), hash64(tokenizer.fingerprint()),
      hash64({reinterpret_cast<const char*>(label_ids.data()), label_ids.size() * sizeof(int64_t)})};
  for (const std::string& name : labels.names()) parts.push_back(hash64(name));
  if (targets.defined())
    parts.push_back(hash64({static_cast<const char*>(targets.const_data_ptr()), targets.nbytes()}));
  return hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

Tensor targets_of(const Table& table) {
  if (table.problem == ProblemType::single_label_classification || !table.has_labels) return {};
  const int64_t width = std::ssize(table.rows.front().targets);
  Tensor targets = at::empty({std::ssize(table.rows), width}, at::kFloat);
  float* next = targets.data_ptr<float>();
  for (const TextRow& row : table.rows) next = std::copy(row.targets.begin(), row.targets.end(), next);
  return table.problem == ProblemType::regression ? targets.squeeze(1) : targets;
}

// Throws if max_length leaves only the special tokens, so that no text would be trained on.
void require_room_for_text(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
                           const OptionNames& names) {
  const text::Encoding encoding = text_tokens(tokenizer, "", if_pairs(table, ""), std::nullopt);
  const int64_t least = std::ssize(encoding.ids) + (table.has_pairs ? 2 : 1);
  if (max_length >= least) return;
  throw ConfigError(
      "{} is {}, of which {} are special tokens: no token of {} is left; set it to at least {}, typical values are 64 to 512",
      names("max_length"), max_length, encoding.ids.size(), table.has_pairs ? "both texts" : "the text",
      least);
}

// Checks the content, since a file of other texts may have this name, a hash of the texts.
void require_tokens_of(const Table& table, const text::Tokenizer& tokenizer, const FeatureFile& tokens,
                       const std::filesystem::path& cache) {
  int32_t least = 0, largest = -1;
  bool has_types = true;
  for (int64_t sample = 0; sample < tokens.size(); ++sample) {
    for (const int32_t id : tokens.row(sample, ids_row)) {
      least = std::min(least, id);
      largest = std::max(largest, id);
    }
    has_types = has_types && tokens.row(sample, types_row).size() == tokens.row(sample, ids_row).size() &&
                std::ranges::all_of(tokens.row(sample, types_row),
                                    [](int32_t type) { return type >= 0 && type < 256; });
  }
  if (tokens.size() == std::ssize(table.rows) && least >= 0 && largest < tokenizer.vocab_size() && has_types)
    return;
  throw DataError(
      "{}: the cached tokens of {} are not those of its texts ({}, ids from {} to {}{}; expected {}, ids from 0 to {}); delete the folder, the next run writes it again",
      cache.string(), table.name, counted(tokens.size(), "sample"), least, largest,
      has_types ? "" : ", not a type per id", counted(std::ssize(table.rows), "sample"),
      tokenizer.vocab_size() - 1);
}

}  // namespace

TextDataset::TextDataset(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
                         const std::filesystem::path& cache, int64_t pad_to_multiple_of,
                         const OptionNames& names)
    : tokens_((require_room_for_text(table, tokenizer, max_length, names),
               std::make_unique<const FeatureFile>(cached_tokens(table, tokenizer, max_length, cache)))),
      has_labels_(table.has_labels),
      pad_to_multiple_of_(pad_to_multiple_of) {
  require_tokens_of(table, tokenizer, *tokens_, cache);
  for (int64_t sample = 0; sample < size(); ++sample) total_tokens_ += length_of(sample);
  for (const TextRow& row : table.rows) labels_.push_back(row.label);
  targets_ = targets_of(table);
  fingerprint_ = fingerprint_of(*tokens_, tokenizer, table.labels, labels_, targets_);
}

TextDataset::~TextDataset() = default;

int64_t TextDataset::size() const { return tokens_->size(); }

int32_t TextDataset::length_of(int64_t sample) const {
  return static_cast<int32_t>(tokens_->row(sample, ids_row).size());
}

std::string TextDataset::fingerprint() const { return fingerprint_; }

Batch TextDataset::pack(std::span<const int64_t> samples) const {
  std::vector<TokenSequence> sequences;
  for (const int64_t sample : samples)
    sequences.push_back({tokens_->row(sample, ids_row), tokens_->row(sample, types_row), sample});
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
