#include <cstring>
#include <future>
#include <thread>

#include "tests/fuzz/fuzz.h"

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/comm/host_team.h"
#include "stretto/comm/shared_collectives.h"
#include "stretto/comm/shared_messages.h"
#include "stretto/comm/store_handle.h"

// Input: the control block of a faulty rank, which its only peer reads.
namespace stretto::fuzz {
namespace {

constexpr auto deadline = std::chrono::milliseconds(3);

const comm::CollectiveCall call = {.operation = static_cast<int32_t>(comm::CollectiveOperation::all_reduce),
                                   .dtype = static_cast<int32_t>(at::kFloat),
                                   .reduce = 0,
                                   .root = 0,
                                   .count = 1000};

// The input: one collective and one message.
struct Forged {
  uint64_t ready, done;
  comm::Membership membership;
  comm::SharedEntry entry;
  uint32_t state;
  int32_t to, tag, dtype;
  uint64_t number, offset, bytes;
};

std::string bytes_of(const Forged& forged) { return {reinterpret_cast<const char*>(&forged), sizeof forged}; }

Forged valid() {
  Forged forged;
  std::memset(&forged, 0, sizeof forged);
  forged.ready = forged.done = 1;
  forged.entry.call = call;
  forged.entry.offset = -1;
  forged.state = static_cast<uint32_t>(comm::SharedMessage::State::posted);
  forged.dtype = static_cast<int32_t>(at::kFloat);
  forged.offset = comm::SharedCollectives::room;
  forged.bytes = 4000;
  return forged;
}

void write(comm::SharedControl& control, const std::string& input) {
  Forged forged = valid();
  std::memcpy(&forged, input.data(), std::min(input.size(), sizeof forged));
  control.entries[0] = forged.entry;
  comm::SharedMessage& message = control.messages[0];
  message.to = forged.to;
  message.tag = forged.tag;
  message.dtype = forged.dtype;
  message.number = forged.number;
  message.offset = forged.offset;
  message.bytes = forged.bytes;
  message.state = static_cast<comm::SharedMessage::State>(forged.state);
  control.done = forged.done;
  control.membership = forged.membership;
  control.ready = forged.ready;
}

// Two ranks that are used for all inputs: one writes, the other reads.
struct Pair {
  std::shared_ptr<StoreHandle> store = memory_store();
  comm::Hosts reader, forger;
  Pair() {
    GroupOptions options;
    options.host = "fuzz";
    auto other = std::async(std::launch::async, [&] {
      return comm::exchange_hosts(*store->store, 1, 2, options, comm::SharedCollectives::room);
    });
    reader = comm::exchange_hosts(*store->store, 0, 2, options, comm::SharedCollectives::room);
    forger = other.get();
  }
};

}  // namespace

std::vector<std::string> seeds() {
  Forged in_place = valid(), left = valid(), other_call = valid();
  in_place.entry.offset = comm::SharedCollectives::room;
  left.ready = 0;
  left.membership = comm::Membership::left;
  other_call.entry.call.operation = static_cast<int32_t>(comm::CollectiveOperation::broadcast);
  return {bytes_of(valid()), bytes_of(in_place), bytes_of(left), bytes_of(other_call)};
}

void run(const std::string& input) {
  Pair pair;
  write(pair.forger.team->control(1), input);
  const Tensor tensor = at::ones({1000});
  comm::SharedMessages messages(*pair.reader.team);
  std::string refusal;
  try {
    messages.take(1, 0, 0, tensor);
  } catch (const DistributedError& error) {
    refusal = error.what();
  }
  comm::SharedCollectives collectives(std::move(pair.reader.team));
  collectives.wait(collectives.start({.call = call,
                                      .shown = tensor.const_data_ptr(),
                                      .taken = tensor.mutable_data_ptr(),
                                      .keep = {tensor}}),
                   deadline);
  if (!refusal.empty()) throw DistributedError("{}", refusal);
}

}  // namespace stretto::fuzz
