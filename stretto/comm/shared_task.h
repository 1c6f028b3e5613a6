#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/comm/shared_control.h"
#include "stretto/tensor/tensor.h"

namespace stretto::comm {

// One call of a collective by one rank, and the arithmetic of its pieces. A collective moves blocks of
// `call.count` elements; each block is cut into the same pieces.
class SharedTask {
 public:
  static constexpr size_t max_piece_bytes = size_t{256} << 10;  // of all blocks that a rank shows

  struct Request {
    CollectiveCall call;       // root: a position in the team
    uint64_t call_number = 0;  // among the collectives of the group
    const void* shown;         // this rank's data, which the others read; null for none
    void* taken;  // this rank's result; null for none; equal to `shown` for all_reduce and reduce
    std::vector<Tensor> keep;  // the tensors that own both
  };

  // The pieces are numbered from `first`. A call without data has one piece, too.
  SharedTask(Request request, int ranks, uint64_t first);

  const CollectiveCall& call() const { return request_.call; }
  NumberedCall numbered_call() const { return {request_.call, request_.call_number}; }
  bool reduces() const { return pattern_.reduces; }
  bool sums_in_place() const { return pattern_.reduces && !pattern_.block_each; }
  // Whether a sum in place is written to the data of `rank`.
  bool sums_at(int rank) const { return !pattern_.to_root || rank == call().root; }
  bool from_root() const { return pattern_.from_root; }  // only the root has data that others read
  bool is_shown_by(int rank) const { return !pattern_.from_root || rank == call().root; }
  // the data that others read have a block for each rank
  bool block_each() const { return pattern_.block_each; }
  int64_t blocks() const { return blocks_; }

  uint64_t first() const { return first_; }
  uint64_t end() const { return end_; }
  int64_t element_bytes() const { return element_bytes_; }
  int64_t elements(uint64_t piece) const;       // of a block
  int64_t whole_lines(int64_t elements) const;  // rounded up to whole cache lines
  size_t bytes(uint64_t piece) const { return static_cast<size_t>(elements(piece) * element_bytes_); }

  // All data shown, and the offset of a piece of a block in it.
  const std::byte* shown() const { return static_cast<const std::byte*>(request_.shown); }
  size_t shown_bytes() const { return static_cast<size_t>(blocks_ * call().count * element_bytes_); }
  size_t offset(uint64_t piece, int64_t block) const;

  // The offset in a staging slot, which holds this piece of every block.
  size_t slot_offset(int64_t block) const;

  std::byte* taken(uint64_t piece, int64_t block) const;  // null where this rank receives nothing

  // Known once the call is entered; `entries` once all ranks have entered it.
  bool entered = false;
  uint64_t number = 0;
  bool staged = false;  // the data are staged in slots
  std::vector<SharedEntry> entries = {};

 private:
  // How an operation moves data.
  struct Pattern {
    bool from_root;   // only the root shows data
    bool block_each;  // each rank receives its own block of what is shown
    bool reduces;
    bool to_root = false;  // only the root's data become the sum
  };
  static Pattern pattern_of(CollectiveOperation operation);

  Request request_;
  Pattern pattern_;
  int64_t element_bytes_;
  int64_t blocks_;
  int64_t piece_elements_;
  uint64_t first_, end_;
};

}  // namespace stretto::comm
