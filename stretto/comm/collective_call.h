#pragma once

#include <cstdint>
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

// "all_gather of 4 float32".
std::string describe(const CollectiveCall& call);

// The reason why a group fails: `rank` has called something else than rank `own_rank`.
std::string describe_difference(int rank, const NumberedCall& theirs, int own_rank, const NumberedCall& own);

}  // namespace stretto::comm
