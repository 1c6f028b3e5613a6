#pragma once

#include <vector>

#include "stretto/comm/mesh.h"

namespace stretto::lite {

// The collective operations of a Lite program.
enum class Act { backward, begin_loader, end_loader, share_count, setup, save, load, collective, leave };

// Every collective operation begins with a small all-gather in which each rank announces its operation, so
// that ranks that diverged (loaders of different lengths, a branch taken by one rank only) fail with an error
// instead of hanging. For backward it also carries the numbers that gradients are scaled by, and it runs
// concurrently with the backward.
struct Announcement {
  Act act = Act::collective;
  int64_t subject = 0;  // the number of the loader, or the models as a bit set
  int64_t number = 0;   // number of batches of the loader so far; for setup: a checksum of the model's shapes
  double loss = 0;      // sum, and its divisor
  double loss_count = 0;
  bool has_unused = false;          // a parameter was not used since the last zero_grad()
  bool buffers_changed = false;     // of the models
  double count = 0;                 // for share_count
  std::vector<double> counts = {};  // per model: samples of the sums that are reduced now
};

// The result over all ranks: sums of the numbers over those with different samples, and whether any rank set
// a flag.
struct Agreed {
  double loss = 0;
  double loss_count = 0;
  bool has_unused = false;
  bool buffers_changed = false;  // rank 0's
  double count = 0;
  std::vector<double> counts;
};

class Agreement {
 public:
  explicit Agreement(const Mesh& mesh) : mesh_(mesh) {}

  // Sets the length of `counts`. All ranks must call it between the same two operations.
  void set_models(size_t models);

  // Starts the exchange. REQUIRES: the previous one was settled.
  void announce(const Announcement& own);

  // Waits for the exchange. Throws DistributedError naming two ranks if they announced different operations.
  Agreed settle();

  Agreed agree(const Announcement& own) {
    announce(own);
    return settle();
  }

 private:
  void compare(const double* first, const double* other, size_t rank) const;

  const Mesh& mesh_;
  Tensor row_;  // this rank's row, float64
  Tensor all_;  // one row per rank
  Work work_;
  size_t models_ = 0;
};

}  // namespace stretto::lite
