#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stretto/parallel/parameters.h"

namespace stretto {
namespace data {
class Dataset;
}
}  // namespace stretto

namespace stretto::trainer {

// The rows of sparse tables (nn::Embedding) that get gradients. If tables are stepped by rows, pages of
// gradients and optimizer state without such a row are never written and take no memory.
class ReachedRows {
 public:
  // Observes the lookups in the tables among `parameters` (collect_tensors), like the engine, for its
  // lifetime. REQUIRES: an engine owns the parameters. element_bytes: the size of a gradient's element.
  ReachedRows(std::span<const parallel::NamedParameter> parameters, int64_t element_bytes);
  ~ReachedRows();
  ReachedRows(const ReachedRows&) = delete;
  ReachedRows& operator=(const ReachedRows&) = delete;

  // Elements of the tables in pages with a row that has been looked up.
  int64_t elements() const;

  // The number of elements after a run over these samples as well. Their "input_ids" are the rows; if other
  // rows of a table have been looked up, the whole table counts.
  int64_t elements_after(const data::Dataset& dataset, std::span<const int64_t> samples) const;

 private:
  class Table;
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace stretto::trainer
