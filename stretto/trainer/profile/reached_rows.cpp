#include "stretto/trainer/profile/reached_rows.h"

#include <algorithm>

#include <unistd.h>

#include "stretto/data/dataset.h"
#include "stretto/nn/row_observer.h"

namespace stretto::trainer {
namespace {

constexpr size_t samples_at_once = 1024;

// Whether each row is reached.
using Rows = std::vector<bool>;

// The values of input_ids.
Rows named_rows(const data::Dataset& dataset, std::span<const int64_t> samples) {
  Rows named;
  while (!samples.empty()) {
    const auto some = samples.first(std::min(samples.size(), samples_at_once));
    samples = samples.subspan(some.size());
    const Batch batch = dataset.pack(some);
    if (!batch.has("input_ids")) return {};
    const Tensor ids = batch.at("input_ids").to(at::kLong).contiguous();
    if (ids.numel() == 0) continue;
    const auto most = static_cast<size_t>(ids.max().item<int64_t>());
    if (named.size() <= most) named.resize(most + 1);
    const int64_t* const values = ids.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < ids.numel(); ++i) named[static_cast<size_t>(values[i])] = true;
  }
  return named;
}

}  // namespace

// Forwards the lookups that it observes.
class ReachedRows::Table : public nn::RowObserver {
 public:
  Table(const parallel::NamedParameter& parameter, int64_t page_elements)
      : hook_(parameter.row_hook),
        next_(hook_->observer),
        rows_(static_cast<size_t>(parameter.tensor.size(0))),
        width_(parameter.tensor.size(1)),
        page_elements_(page_elements) {
    hook_->observer = this;
  }
  ~Table() override {
    if (hook_->observer == this) hook_->observer = next_;
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void will_read(const Tensor& ids) override { next_->will_read(ids); }
  void got_gradient(const Tensor& ids) override {
    const int64_t* const values = ids.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < ids.numel(); ++i) rows_[static_cast<size_t>(values[i])] = true;
    next_->got_gradient(ids);
  }

  const Rows& rows() const { return rows_; }

  // `named`: rows that are looked up later.
  Rows with(const Rows& named) const {
    Rows both = rows_;
    for (size_t row = 0; row < std::max(rows_.size(), named.size()); ++row) {
      const bool is_named = row < named.size() && named[row];
      const bool is_read_unnamed = row < rows_.size() && rows_[row] && !is_named;
      if (is_read_unnamed || (is_named && row >= rows_.size())) return Rows(rows_.size(), true);
      if (is_named) both[row] = true;
    }
    return both;
  }

  // The number of elements in pages that contain one of `rows`.
  int64_t elements(const Rows& rows) const {
    int64_t pages = 0, counted = 0;  // all pages before `counted`
    for (int64_t row = 0; row < std::ssize(rows); ++row) {
      if (!rows[static_cast<size_t>(row)]) continue;
      const int64_t first = std::max(counted, row * width_ / page_elements_),
                    end = ((row + 1) * width_ + page_elements_ - 1) / page_elements_;
      pages += std::max<int64_t>(0, end - first);
      counted = std::max(counted, end);
    }
    return std::min(pages * page_elements_, std::ssize(rows) * width_);
  }

 private:
  std::shared_ptr<nn::RowHook> hook_;
  nn::RowObserver* next_;
  Rows rows_;
  int64_t width_, page_elements_;
};

ReachedRows::ReachedRows(std::span<const parallel::NamedParameter> parameters, int64_t element_bytes) {
  for (const parallel::NamedParameter& parameter : parameters) {
    if (parameter.row_hook != nullptr && parameter.row_hook->observer != nullptr)
      tables_.push_back(std::make_unique<Table>(parameter, ::sysconf(_SC_PAGESIZE) / element_bytes));
  }
}

ReachedRows::~ReachedRows() = default;

int64_t ReachedRows::elements() const {
  int64_t sum = 0;
  for (const auto& table : tables_) sum += table->elements(table->rows());
  return sum;
}

int64_t ReachedRows::elements_after(const data::Dataset& dataset, std::span<const int64_t> samples) const {
  const Rows named = named_rows(dataset, samples);
  int64_t sum = 0;
  for (const auto& table : tables_) sum += table->elements(table->with(named));
  return sum;
}

}  // namespace stretto::trainer
