#include "stretto/comm/shared_messages.h"

#include <cstring>

#include "stretto/base/error.h"

namespace stretto {
namespace {

using MessageState = SharedMessage::State;

}  // namespace

bool SharedMessages::post(int place, int tag, uint64_t number, const Tensor& tensor) {
  SharedControl& mine = team_.control(team_.me());
  SharedSegment& segment = *team_.segment();
  SharedMessage* free = nullptr;
  for (SharedMessage& message : mine.messages) {
    if (message.state.load(std::memory_order_acquire) == MessageState::taken) {
      if (message.bytes > 0) segment.give_back(message.offset, message.bytes);
      message.state.store(MessageState::empty, std::memory_order_relaxed);
    }
    if (message.state.load(std::memory_order_relaxed) == MessageState::empty) free = &message;
  }
  if (free == nullptr) return false;
  free->to = place;
  free->tag = tag;
  free->dtype = static_cast<int32_t>(tensor.scalar_type());
  free->number = number;
  free->bytes = tensor.nbytes();
  free->offset = free->bytes > 0 ? segment.take(free->bytes) : 0;
  if (free->bytes > 0) std::memcpy(segment.data() + free->offset, tensor.const_data_ptr(), free->bytes);
  free->state.store(MessageState::posted, std::memory_order_release);
  announce(mine);
  return true;
}

bool SharedMessages::take(int place, int tag, uint64_t number, const Tensor& tensor) {
  for (SharedMessage& message : team_.control(place).messages) {
    if (message.state.load(std::memory_order_acquire) != MessageState::posted || message.to != team_.me() ||
        message.tag != tag || message.number != number) {
      continue;
    }
    if (message.bytes != tensor.nbytes() || message.dtype != static_cast<int32_t>(tensor.scalar_type())) {
      throw DistributedError("rank {} sent {} bytes of {}, and {} bytes of {} were to be received",
                             team_.mate(place).rank, message.bytes,
                             c10::toString(static_cast<at::ScalarType>(message.dtype)), tensor.nbytes(),
                             c10::toString(tensor.scalar_type()));
    }
    if (message.bytes > 0) {
      std::memcpy(tensor.mutable_data_ptr(), team_.mate(place).data + message.offset, message.bytes);
    }
    message.state.store(MessageState::taken, std::memory_order_release);
    announce(team_.control(team_.me()));
    return true;
  }
  return false;
}

}  // namespace stretto
