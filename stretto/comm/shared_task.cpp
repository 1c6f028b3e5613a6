#include "stretto/comm/shared_task.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace stretto::comm {

SharedTask::Pattern SharedTask::pattern_of(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::all_reduce:
      return {.from_root = false, .block_each = false, .reduces = true};
    case CollectiveOperation::reduce:
      return {.from_root = false, .block_each = false, .reduces = true, .to_root = true};
    case CollectiveOperation::broadcast:
      return {.from_root = true, .block_each = false, .reduces = false};
    case CollectiveOperation::reduce_scatter:
      return {.from_root = false, .block_each = true, .reduces = true};
    case CollectiveOperation::all_to_all:
      return {.from_root = false, .block_each = true, .reduces = false};
    case CollectiveOperation::all_gather:
    case CollectiveOperation::barrier:
      break;
  }
  return {.from_root = false, .block_each = false, .reduces = false};
}

SharedTask::SharedTask(Request request, int ranks, uint64_t first)
    : request_(std::move(request)),
      pattern_(pattern_of(static_cast<CollectiveOperation>(call().operation))),
      element_bytes_(static_cast<int64_t>(c10::elementSize(static_cast<at::ScalarType>(call().dtype)))),
      blocks_(pattern_.block_each ? ranks : 1),
      first_(first) {
  const int64_t line = whole_lines(1), fit = static_cast<int64_t>(max_piece_bytes) / element_bytes_ / blocks_;
  piece_elements_ = std::max<int64_t>(1, fit / line) * line;
  const int64_t pieces = (call().count + piece_elements_ - 1) / piece_elements_;
  end_ = first + static_cast<uint64_t>(std::max<int64_t>(1, pieces));
}

int64_t SharedTask::elements(uint64_t piece) const {
  return std::min(piece_elements_, call().count - static_cast<int64_t>(piece - first_) * piece_elements_);
}

int64_t SharedTask::whole_lines(int64_t elements) const {
  const int64_t line = 64 / element_bytes_;
  return (elements + line - 1) / line * line;
}

size_t SharedTask::offset(uint64_t piece, int64_t block) const {
  const int64_t element = block * call().count + static_cast<int64_t>(piece - first_) * piece_elements_;
  return static_cast<size_t>(element * element_bytes_);
}

size_t SharedTask::slot_offset(int64_t block) const {
  return static_cast<size_t>(block * piece_elements_ * element_bytes_);
}

std::byte* SharedTask::taken(uint64_t piece, int64_t block) const {
  if (request_.taken == nullptr) return nullptr;
  return static_cast<std::byte*>(request_.taken) + offset(piece, block);
}

}  // namespace stretto::comm
