#include "stretto/trainer/run/gathered_predictions.h"

#include <cmath>
#include <cstring>

#include "stretto/base/error.h"

namespace stretto::trainer {
namespace {

// The form in which a rank sends its predictions: Header, sample indices, rows, the sizes of the bytes, the
// bytes.
struct Header {
  int64_t samples;
  int64_t width;  // of a row; -1: there are no rows
  int64_t has_bytes;
};

template <class T>
void append(std::string& to, const T* values, int64_t count) {
  to.append(reinterpret_cast<const char*>(values), static_cast<size_t>(count) * sizeof(T));
}

template <class T>
std::vector<T> take(std::string_view& from, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  std::memcpy(values.data(), from.data(), values.size() * sizeof(T));
  from.remove_prefix(values.size() * sizeof(T));
  return values;
}

void require_same_form(int64_t width, int64_t other_width, bool has_bytes, bool other_has_bytes) {
  const auto form = [](int64_t of_width, bool bytes) {
    return fmt::format("{} and {}", of_width < 0 ? "no rows" : fmt::format("rows of {} values", of_width),
                       bytes ? "bytes" : "no bytes");
  };
  if (width == other_width && has_bytes == other_has_bytes) return;
  throw ShapeError("a step returned {} for one batch, {} for another; expected the same for every batch",
                   form(width, has_bytes), form(other_width, other_has_bytes));
}

// Copies a rank's predictions to the places of their samples.
void place(std::string_view encoded, int64_t dataset_size, Predictions& all) {
  const Header header = take<Header>(encoded, 1).front();
  if (header.samples == 0) return;
  const bool has_rows = header.width >= 0;
  if (all.empty()) {
    if (has_rows) all.rows = at::full({dataset_size, header.width}, std::nan(""), at::kDouble);
    if (header.has_bytes != 0) all.bytes.resize(static_cast<size_t>(dataset_size));
  }
  require_same_form(all.rows.defined() ? all.rows.size(1) : -1, header.width, !all.bytes.empty(),
                    header.has_bytes != 0);
  const auto samples = take<int64_t>(encoded, header.samples);
  if (has_rows) {
    const auto values = take<double>(encoded, header.samples * header.width);
    all.rows.index_copy_(0, at::tensor(samples), at::tensor(values).view({header.samples, header.width}));
  }
  if (header.has_bytes == 0) return;
  const auto sizes = take<int64_t>(encoded, header.samples);
  for (size_t i = 0; i < samples.size(); ++i) {
    all.bytes.at(static_cast<size_t>(samples[i])) = encoded.substr(0, static_cast<size_t>(sizes[i]));
    encoded.remove_prefix(static_cast<size_t>(sizes[i]));
  }
}

int64_t width_of(const std::vector<Tensor>& rows) { return rows.empty() ? -1 : rows.front().size(1); }

}  // namespace

void GatheredPredictions::add(std::span<const int64_t> samples, Predictions predictions) {
  if (predictions.empty()) return;
  const int64_t width = predictions.rows.defined() ? predictions.rows.size(1) : -1;
  const bool has_bytes = !predictions.bytes.empty();
  if (!samples_.empty()) require_same_form(width_of(rows_), width, !bytes_.empty(), has_bytes);
  samples_.insert(samples_.end(), samples.begin(), samples.end());
  if (width >= 0) rows_.push_back(std::move(predictions.rows));
  std::ranges::move(predictions.bytes, std::back_inserter(bytes_));
}

std::string GatheredPredictions::encode() const {
  const Header header = {std::ssize(samples_), width_of(rows_), bytes_.empty() ? 0 : 1};
  std::string encoded;
  append(encoded, &header, 1);
  append(encoded, samples_.data(), std::ssize(samples_));
  for (const Tensor& rows : rows_) append(encoded, rows.const_data_ptr<double>(), rows.numel());
  for (const std::string& bytes : bytes_) {
    const int64_t size = std::ssize(bytes);
    append(encoded, &size, 1);
  }
  for (const std::string& bytes : bytes_) encoded += bytes;
  return encoded;
}

Predictions GatheredPredictions::gather(Group& group, int64_t dataset_size) const {
  const auto of_ranks = group.all_gather_bytes(encode());
  Predictions all;
  if (group.rank() != 0) return all;
  for (const std::string& encoded : of_ranks) place(encoded, dataset_size, all);
  return all;
}

}  // namespace stretto::trainer
