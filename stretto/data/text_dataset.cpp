#include "stretto/data/text_dataset.h"

#include <algorithm>
#include <chrono>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"

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
  const text::EncodeOptions options = {.special_tokens = true, .max_length = static_cast<size_t>(max_length)};
  TokenFile::write(path, std::ssize(table.rows),
                   [&](int64_t sample, std::vector<int32_t>& ids, std::vector<uint8_t>& types) {
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
  if (!std::filesystem::exists(path)) {
    make_folders(cache);
    tokenize(table, tokenizer, max_length, path);
  }
  return path;
}

}  // namespace

TextDataset::TextDataset(const Table& table, const text::Tokenizer& tokenizer, int64_t max_length,
                         const std::filesystem::path& cache)
    : tokens_(cached_tokens(table, tokenizer, max_length, cache)), has_labels_(table.has_labels) {
  for (int64_t sample = 0; sample < size(); ++sample) {
    lengths_.push_back(static_cast<int32_t>(tokens_.ids(sample).size()));
    total_tokens_ += lengths_.back();
  }
  for (const TextRow& row : table.rows) labels_.push_back(row.label);
}

Batch TextDataset::pack(std::span<const int64_t> samples) const {
  Batch batch;
  batch.sample_ids.assign(samples.begin(), samples.end());
  batch.count = std::ssize(samples);
  if (samples.empty()) return batch;
  int64_t total = 0;
  for (const int64_t sample : samples) total += lengths_[static_cast<size_t>(sample)];
  const auto new_tensor = [](int64_t elements) { return at::empty({elements}, at::kLong); };
  Tensor ids = new_tensor(total), types = new_tensor(total), positions = new_tensor(total),
         owners = new_tensor(total);
  Tensor bounds = new_tensor(batch.count + 1), labels = new_tensor(batch.count);
  int64_t token = 0;
  for (int64_t b = 0; b < batch.count; ++b) {
    const int64_t sample = samples[static_cast<size_t>(b)];
    const auto sample_ids = tokens_.ids(sample);
    const auto sample_types = tokens_.types(sample);
    const auto length = std::ssize(sample_ids);
    std::copy(sample_ids.begin(), sample_ids.end(), ids.data_ptr<int64_t>() + token);
    std::copy(sample_types.begin(), sample_types.end(), types.data_ptr<int64_t>() + token);
    for (int64_t i = 0; i < length; ++i) positions.data_ptr<int64_t>()[token + i] = i;
    std::fill_n(owners.data_ptr<int64_t>() + token, length, sample);
    bounds.data_ptr<int64_t>()[b] = token;
    labels.data_ptr<int64_t>()[b] = labels_[static_cast<size_t>(sample)];
    token += length;
  }
  bounds.data_ptr<int64_t>()[batch.count] = token;
  batch.tensors = {{"input_ids", ids},
                   {"token_type_ids", types},
                   {"position_ids", positions},
                   {"samples", owners},
                   {"cu_seqlens", bounds}};
  if (has_labels_) batch.tensors["labels"] = labels;
  return batch;
}

}  // namespace stretto::data
