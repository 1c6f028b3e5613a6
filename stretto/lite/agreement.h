#pragma once

#include <vector>

#include "stretto/comm/group.h"

namespace stretto::lite {

// What a rank of a Lite program is about to do together with the others.
enum class Act { backward, begin_loader, end_loader, share_count, setup, save, load, collective, leave };

// Every joint act begins with one small all-gather in which each rank says what it is about to do. So ranks that have
// come apart (loaders of different lengths, a branch that one rank alone took) end with a sentence in place of a hang.
// Of a backward it also carries the few numbers that gradients are scaled by, and it travels beside the backward.
struct Announcement {
  Act act = Act::collective;
  int64_t subject = 0;  // which loader, which models (a bit each)
  int64_t number = 0;   // batches of the loader so far; of act setup a checksum of the model's shapes
  double loss = 0;      // sum, and what it is to be divided by
  double loss_count = 0;
  bool has_unused = false;          // some parameter has not been used since gradients were last zeroed
  bool buffers_changed = false;     // of the models
  double count = 0;                 // of act share_count
  std::vector<double> counts = {};  // a model each: samples of the sums that are reduced now
};

// The numbers of all ranks: sums, and of flags whether any rank's is set.
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
  explicit Agreement(Group& group) : group_(group) {}

  // From now on `models` counts are carried. On all ranks between the same two acts.
  void set_models(size_t models);

  // Starts the exchange. REQUIRES: the one before was settled.
  void announce(const Announcement& mine);

  // Waits for it. Throws DistributedError naming two ranks where not all are about to do the same.
  Agreed settle();

  Agreed meet(const Announcement& mine) {
    announce(mine);
    return settle();
  }

 private:
  void compare(const double* first, const double* other, size_t rank) const;

  Group& group_;
  Tensor mine_;  // one rank's numbers, float64
  Tensor all_;   // of all ranks, a row each
  Work work_;
  size_t models_ = 0;
};

}  // namespace stretto::lite
