#include "stretto/comm/shared_messages.h"

#include <cstring>

#include "stretto/base/error.h"

namespace stretto {
namespace {

using MessageState = SharedMessage::State;

}  // namespace

uint64_t SharedMessages::send(int place, int tag, const Tensor& tensor) {
  waiting_.push_back({place, tag, sent_[{place, tag}]++, tensor});
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

bool SharedMessages::post(const Letter& letter) {
  const Tensor& tensor = letter.tensor;
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
  free->to = letter.place;
  free->tag = letter.tag;
  free->dtype = static_cast<int32_t>(tensor.scalar_type());
  free->number = letter.number;
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
    const size_t bytes = message.bytes;
    const auto dtype = static_cast<at::ScalarType>(message.dtype);
    const bool fits = bytes == tensor.nbytes() && dtype == tensor.scalar_type();
    if (fits && bytes > 0) {
      std::memcpy(tensor.mutable_data_ptr(), team_.mate(place).data + message.offset, bytes);
    }
    message.state.store(MessageState::taken, std::memory_order_release);
    announce(team_.control(team_.me()));
    if (!fits) {
      throw DistributedError("rank {} sent {} bytes of {}, and {} bytes of {} were to be received",
                             team_.mate(place).rank, bytes, c10::toString(dtype), tensor.nbytes(),
                             c10::toString(tensor.scalar_type()));
    }
    return true;
  }
  return false;
}

}  // namespace stretto
