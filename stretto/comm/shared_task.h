#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/comm/shared_control.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

enum class SharedOperation : int32_t {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier
};

// "all_gather of 4 float32".
std::string describe(const SharedCall& call);

// One call of a collective by one rank, and the arithmetic of its pieces. A collective moves blocks of `call.count`
// elements, each of them cut into the same pieces.
class SharedTask {
 public:
  static constexpr size_t max_piece_bytes = size_t{256} << 10;  // of all blocks that a rank shows

  struct Request {
    SharedCall call;           // root: a place in the team
    const void* shown;         // this rank's data for the others to read, where it has any
    void* taken;               // where its result goes, where it gets one; the same for all_reduce
    std::vector<Tensor> keep;  // what these lie in
  };

  // The pieces get the numbers from `first` on. A call without data has one piece, too.
  SharedTask(Request request, int ranks, uint64_t first);

  const SharedCall& call() const { return request_.call; }
  bool reduces() const { return pattern_.reduces; }
  bool is_all_reduce() const { return pattern_.reduces && !pattern_.block_each; }
  bool from_root() const { return pattern_.from_root; }  // only the root shows anything
  bool is_shown_by(int place) const { return !pattern_.from_root || place == call().root; }
  bool block_each() const { return pattern_.block_each; }  // what is shown has a block for each rank
  int64_t blocks() const { return blocks_; }

  uint64_t first() const { return first_; }
  uint64_t end() const { return end_; }
  int64_t element_bytes() const { return element_bytes_; }
  int64_t elements(uint64_t piece) const;       // of a block
  int64_t whole_lines(int64_t elements) const;  // so many or a few more: up to the end of a cache line
  size_t bytes(uint64_t piece) const { return static_cast<size_t>(elements(piece) * element_bytes_); }

  // Everything shown, and where in it a piece of a block begins.
  const std::byte* shown() const { return static_cast<const std::byte*>(request_.shown); }
  size_t shown_bytes() const { return static_cast<size_t>(blocks_ * call().count * element_bytes_); }
  size_t offset(uint64_t piece, int64_t block) const;

  // The same, where a piece lies in a staging slot with those of the other blocks.
  size_t slot_offset(int64_t block) const;

  std::byte* taken(uint64_t piece, int64_t block) const;  // null where this rank takes nothing

  // Known once the call is entered, and of each rank, once all have entered it.
  bool entered = false;
  uint64_t number = 0;
  bool staged = false;  // shown in slots
  std::vector<SharedEntry> entries = {};

 private:
  // How an operation moves data.
  struct Pattern {
    bool from_root;   // only the root has something to show
    bool block_each;  // each rank takes its own block of what is shown
    bool reduces;
  };
  static Pattern pattern_of(SharedOperation operation);

  Request request_;
  Pattern pattern_;
  int64_t element_bytes_;
  int64_t blocks_;
  int64_t piece_elements_;
  uint64_t first_, end_;
};

}  // namespace stretto
