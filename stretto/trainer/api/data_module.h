#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stretto/data/dataset.h"

namespace stretto {

enum class Stage { fit, test, predict };

// The position of a rank among those that share the global batch.
struct DataParallelRank {
  int rank = 0;
  int size = 1;
};

// The source of a run's datasets. Trainer::fit(), test() and predict() call the functions in this order; the
// datasets must live until they return. Every rank has its own instance.
class DataModule {
 public:
  virtual ~DataModule() = default;

  // Downloads, converts or tokenises into files. Called on one rank per host, while the others of the host
  // wait; members that it sets are visible on that rank only.
  virtual void prepare_data() {}

  // Opens what the stage needs. Called on every rank.
  virtual void setup(Stage /*stage*/, const DataParallelRank& /*ranks*/) {}

  // The datasets; null if there is none. fit() needs train(), test() needs test(), and predict() needs
  // predict(). The Trainer divides a dataset among the ranks, so each rank returns all of it.
  virtual const data::Dataset* train() { return nullptr; }
  virtual const data::Dataset* validation() { return nullptr; }
  // Further validation sets by name, as for Trainer::add_validation().
  virtual std::vector<std::pair<std::string, const data::Dataset*>> more_validation() { return {}; }
  virtual const data::Dataset* test() { return nullptr; }
  virtual const data::Dataset* predict() { return nullptr; }
};

}  // namespace stretto
