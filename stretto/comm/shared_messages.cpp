#include "stretto/comm/shared_messages.h"

#include <cstring>
#include <optional>
#include <utility>

#include "stretto/base/error.h"

namespace stretto::comm {
namespace {

using MessageState = SharedMessage::State;

// The name of a dtype; accepts any number, since a peer may have written it.
std::string dtype_text(at::ScalarType dtype) {
  const auto number = static_cast<int>(dtype);
  return number >= 0 && dtype < at::ScalarType::NumOptions ? c10::toString(dtype) : "an unknown type";
}

}  // namespace

uint64_t SharedMessages::send(int peer, int tag, const Tensor& tensor) {
  waiting_.push_back({peer, tag, sent_[{peer, tag}]++, tensor});
  const uint64_t number = posted_ + waiting_.size();
  flush();
  return number;
}

bool SharedMessages::sent(uint64_t number) {
  flush();
  return posted_ >= number;
}

bool SharedMessages::flush() {
  const uint64_t before = posted_;
  while (!waiting_.empty() && post(waiting_.front())) {
    waiting_.pop_front();
    ++posted_;
  }
  return posted_ != before;
}

bool SharedMessages::post(const Outgoing& outgoing) {
  const Tensor& tensor = outgoing.tensor;
  SharedControl& own = team_.control(team_.me());
  SharedSegment& segment = *team_.segment();
  std::optional<size_t> found;
  for (size_t i = 0; i < own.messages.size(); ++i) {
    SharedMessage& message = own.messages[i];
    if (message.state.load(std::memory_order_acquire) == MessageState::taken) {
      const Extent extent = std::exchange(extents_[i], {});
      if (extent.bytes > 0) segment.give_back(extent.offset, extent.bytes);
      message.state.store(MessageState::empty, std::memory_order_relaxed);
    }
    if (message.state.load(std::memory_order_relaxed) == MessageState::empty) found = i;
  }
  if (!found) return false;
  SharedMessage* const free = &own.messages[*found];
  free->to = outgoing.peer;
  free->tag = outgoing.tag;
  free->dtype = static_cast<int32_t>(tensor.scalar_type());
  free->number = outgoing.number;
  const size_t bytes = tensor.nbytes(), offset = bytes > 0 ? segment.take(bytes) : 0;
  if (bytes > 0) std::memcpy(segment.data() + offset, tensor.const_data_ptr(), bytes);
  extents_[*found] = {offset, bytes};
  free->bytes = bytes;
  free->offset = offset;
  free->state.store(MessageState::posted, std::memory_order_release);
  announce(own);
  return true;
}

bool SharedMessages::take(int peer, int tag, uint64_t number, const Tensor& tensor) {
  for (SharedMessage& message : team_.control(peer).messages) {
    if (message.state.load(std::memory_order_acquire) != MessageState::posted || message.to != team_.me() ||
        message.tag != tag || message.number != number) {
      continue;
    }
    const uint64_t bytes = message.bytes, offset = message.offset;
    const auto dtype = static_cast<at::ScalarType>(message.dtype);
    const bool fits = bytes == tensor.nbytes() && dtype == tensor.scalar_type();
    const bool lies_in_segment = team_.peer(peer).holds(offset, bytes);
    if (fits && lies_in_segment && bytes > 0)
      std::memcpy(tensor.mutable_data_ptr(), team_.peer(peer).data + offset, bytes);
    message.state.store(MessageState::taken, std::memory_order_release);
    announce(team_.control(team_.me()));
    if (!lies_in_segment) {
      throw DistributedError("rank {} sent {} bytes outside of its memory: its control block is damaged",
                             team_.peer(peer).rank, bytes);
    }
    if (!fits) {
      throw DistributedError("rank {} sent {} bytes of {}, but this rank receives {} bytes of {}",
                             team_.peer(peer).rank, bytes, dtype_text(dtype), tensor.nbytes(),
                             c10::toString(tensor.scalar_type()));
    }
    return true;
  }
  return false;
}

}  // namespace stretto::comm
