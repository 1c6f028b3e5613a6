#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace stretto::comm {

enum class CollectiveOperation : int32_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier
};

// The properties of a collective that all its ranks must agree on. A plain struct, since it is copied between
// processes.
struct CollectiveCall {
  int32_t operation;
  int32_t dtype;
  int32_t reduce;
  int32_t root;
  int64_t count;  // elements of a block

  bool operator==(const CollectiveCall&) const = default;
};

// A collective that a rank has called, and how many of the group it had called before.
struct NumberedCall {
  CollectiveCall call;
  uint64_t number;

  bool operator==(const NumberedCall&) const = default;
};

// The number by which messages name a rank of a group: its number in the job, whose output a user looks for.
// `world_ranks`: GroupOptions::world_ranks. A number that is not a rank of the group, which a damaged peer
// may have written, is returned as it is.
int world_rank(std::span<const int> world_ranks, int rank);

// "broadcast of 4 float32 (root 2)", with the number in the job of the root.
std::string describe(const CollectiveCall& call, std::span<const int> world_ranks);

// The reason why a group fails: `rank` has called something else than rank `own_rank`, both numbered as in
// the job. `world_ranks`: of the group of the calls.
std::string describe_difference(int rank, const NumberedCall& theirs, int own_rank, const NumberedCall& own,
                                std::span<const int> world_ranks);

}  // namespace stretto::comm
