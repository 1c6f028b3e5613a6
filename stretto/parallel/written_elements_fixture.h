#pragma once

#include <map>
#include <mutex>
#include <string>

#include "stretto/base/region.h"
#include "stretto/parallel/engine.h"

namespace stretto::parallel {

// Counts the elements of each entry of the state table of several ranks, which may be threads.
class WrittenElements {
 public:
  void add(Engine& engine) {
    State state;
    engine.add_state(state);
    const std::scoped_lock lock(mutex_);
    for (const Entry& entry : state.tensors) {
      whole[entry.name] = count_elements(entry.shape);
      for (const Piece& piece : entry.pieces)
        written[entry.name] += entry.holders.me == 0 ? piece.data.numel() : 0;
    }
  }

  std::map<std::string, int64_t> whole;    // of the tensor
  std::map<std::string, int64_t> written;  // of the pieces of which a rank is the first holder

 private:
  std::mutex mutex_;
};

}  // namespace stretto::parallel
