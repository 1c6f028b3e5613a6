#pragma once

#include <cstdint>

#include "stretto/comm/group.h"
#include "stretto/trainer/records/logged_values.h"

namespace stretto::trainer {

// The measurements of a rank in the steps of a record.
struct RankUse {
  double seconds = 0;        // in steps
  double communication = 0;  // seconds of these in communication only
  double data_wait = 0;      // seconds of these on making batches
};

// The combined values of all ranks, on rank 0; empty on the others. Collective.
//   communication    share of the ranks' time in which they only communicated
//   data_wait        share of the ranks' time that was spent on making batches
//   rank_imbalance   computing time of the busiest rank, relative to the mean: 1 if the ranks are balanced
//   memory_mib       resident memory of the largest rank, in MiB; memory that ranks share counts for each
//   gpu_memory_mib   the most memory that libtorch has reserved on a GPU, in MiB; on GPUs only
Metrics gather_rank_use(const Mesh& mesh, const RankUse& local);

}  // namespace stretto::trainer
