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

// The rows of sparse tables (nn::Embedding) that get gradients. Where tables are stepped by rows, pages of
// gradients and optimizer state without such a row are never written, and take no memory.
class ReachedRows {
 public:
  // Observes the lookups in the tables among `parameters` (collect_tensors), as the engine does, from now
  // until it is destroyed. REQUIRES: an engine holds the parameters. element_bytes: of a gradient.
  ReachedRows(std::span<const parallel::NamedParameter> parameters, int64_t element_bytes);
  ~ReachedRows();
  ReachedRows(const ReachedRows&) = delete;
  ReachedRows& operator=(const ReachedRows&) = delete;

  // Elements of the tables in pages with a row that has been looked up.
  int64_t elements() const;

  // The same after a run over these samples too. Their "input_ids" name the rows; a table in which other rows
  // have been looked up is taken to be reached whole.
  int64_t elements_after(const data::Dataset& dataset, std::span<const int64_t> samples) const;

 private:
  class Table;
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace stretto::trainer
