#include "stretto/parallel/gathered_weights.h"

#include <algorithm>

#include "stretto/base/log.h"

namespace stretto::parallel {
namespace {

constexpr int64_t most = 32 << 10;  // elements per message, of which 64 may wait in shared memory

// Broadcasts the elements of the arena that the first rank requests; an empty range if it has finished.
Range ask(Group& group, const Range& elements = {0, 0}) {
  Tensor range = at::tensor({elements.begin, elements.end}, at::kLong).to(group.device());
  group.broadcast(range, 0).wait();
  range = range.cpu();
  return {range[0].item<int64_t>(), range[1].item<int64_t>()};
}

// The messages in which a shard's part of `elements` is sent.
template <class Move>
void each_message(const Range& shard, const Range& elements, const Move& move) {
  const Range part = shard & elements;
  for (int64_t begin = part.begin; begin < part.end; begin += most)
    move(Range{begin, std::min(begin + most, part.end)});
}

Tensor owned_part(const Arena& arena, const Range& elements) {
  return arena.owned_buffers().master.slice(0, elements.begin - arena.owned().begin,
                                            elements.end - arena.owned().begin);
}

}  // namespace

GatheredWeights::GatheredWeights(const Arena& arena, Group& group, NamedTensors others)
    : arena_(arena), group_(group), others_(std::move(others)), types_(others_.types()) {
  for (const Arena::Parameter& parameter : arena.parameters()) {
    const NamedParameter& info = parameter.info;
    parameters_[info.name] = &parameter;
    types_[info.name] = {arena.buffers().master.scalar_type(), info.layout.global};
  }
}

GatheredWeights::~GatheredWeights() {
  try {
    ask(group_);
  } catch (const std::exception& error) {  // the group has failed; its next call reports that
    log::warning("{}", error.what());
  }
}

Tensor GatheredWeights::in_memory(const std::string& name) const {
  return others_.has(name) ? others_.in_memory(name) : Tensor();
}

Tensor GatheredWeights::gather(const Range& elements) const {
  ask(group_, elements);
  const Tensor values = at::empty({elements.size()}, arena_.buffers().master.options());
  for (size_t owner = 0; owner < arena_.shards().size(); ++owner) {
    each_message(arena_.shards()[owner], elements, [&](const Range& part) {
      Tensor target = values.slice(0, part.begin - elements.begin, part.end - elements.begin);
      if (owner == 0) {
        target.copy_(owned_part(arena_, part));
      } else {
        group_.recv(target, static_cast<int>(owner)).wait();
      }
    });
  }
  return values;
}

void GatheredWeights::read(const std::string& name, const Region& region, const Tensor& values) const {
  if (others_.has(name)) return others_.read(name, region, values);
  if (region.elements() == 0) return;  // an empty request would mean the end
  const Arena::Parameter& parameter = *parameters_.at(name);
  const std::vector<int64_t>& shape = parameter.info.layout.global;
  if (region.extent == shape) {
    const Tensor found = gather({parameter.begin + region.flat_begin, parameter.begin + region.flat_end});
    values.copy_(found.view(values.sizes()));
    return;
  }
  const Tensor whole = gather({parameter.begin, parameter.end}).view(shape);
  MemorySource({{name, whole}}).read(name, region, values);
}

void send_weights(const Arena& arena, Group& group) {
  for (Range elements = ask(group); elements.size() > 0; elements = ask(group)) {
    each_message(arena.owned(), elements,
                 [&](const Range& part) { group.send(owned_part(arena, part), 0).wait(); });
  }
}

}  // namespace stretto::parallel
