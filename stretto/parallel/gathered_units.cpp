#include "stretto/parallel/gathered_units.h"

#include <utility>

#include "stretto/parallel/phase.h"
#include "stretto/tensor/file_memory.h"

namespace stretto::parallel {

GatheredUnits::GatheredUnits(torch::nn::Module& root, Arena& arena, Group& group, bool reshard_after_forward,
                             bool in_files)
    : arena_(arena),
      group_(group),
      reshard_after_forward_(reshard_after_forward),
      in_files_(in_files),
      buffers_([&arena, allocator = group.allocator()](int64_t elements) {
        const Tensor& values = arena.parameter_values();
        return allocator(elements, values.scalar_type(), values.device());
      }) {
  std::map<std::string, std::vector<size_t>> by_name;
  for (const Arena::Unit& unit : arena.units()) {
    by_name[unit.name].push_back(units_.size());
    units_.push_back({.owned = (unit.elements & arena.owned()).size() == unit.elements.size()});
  }
  resident_ = by_name[""];
  for (nn::Block* block : nn::collect_blocks(root)) {
    if (block->path().empty() || !by_name.contains(block->path())) continue;
    blocks_.push_back(block);
    units_of_[block] = by_name.at(block->path());
    block->observe(this);
  }
}

GatheredUnits::~GatheredUnits() {
  for (nn::Block* block : blocks_) block->observe(nullptr);
}

void GatheredUnits::refresh() {
  for (size_t unit = 0; unit < units_.size(); ++unit) release(unit);
  ahead_.clear();
  order_.begin_step();
  for (const size_t unit : resident_) begin(unit);
  for (const size_t unit : resident_) finish(unit);
}

void GatheredUnits::open(const nn::Block& block, size_t pass) {
  for (const size_t unit : units_of_.at(&block)) {
    ++units_[unit].users;
    std::erase(ahead_, unit);
    begin(unit);
  }
  for (const size_t unit : units_of_.at(&block)) finish(unit);
  order_.add(block, pass);
  gather_ahead(block, pass);
}

// Without gradients there is no backward. The first forward of activation checkpointing has no gradients
// either.
void GatheredUnits::after_forward(nn::Block& block) noexcept {
  close(block, /*keep=*/!reshard_after_forward_ && at::GradMode::is_enabled());
}

void GatheredUnits::close(const nn::Block& block, bool keep) noexcept {
  for (const size_t unit : units_of_.at(&block)) {
    if (--units_[unit].users == 0 && !keep) release(unit);
  }
}

// Gathers at most one block ahead, and releases a block that was gathered ahead but not used.
void GatheredUnits::gather_ahead(const nn::Block& block, size_t pass) {
  const nn::Block* const next = order_.after(block, pass);
  if (next == nullptr) return;
  for (const size_t unit : std::exchange(ahead_, {})) release(unit);
  for (const size_t unit : units_of_.at(next)) {
    if (units_[unit].begun) continue;
    begin(unit);
    ahead_.push_back(unit);
  }
  if (in_files_) read_owned_ahead(order_.after(*next, pass));
}

// This rank's part of a unit.
Tensor GatheredUnits::owned_part(size_t unit) const {
  const Range part = arena_.units()[unit].elements & arena_.owned();
  return arena_.parameter_values().slice(0, part.begin - arena_.owned().begin,
                                         part.end - arena_.owned().begin);
}

void GatheredUnits::read_owned_ahead(const nn::Block* block) const {
  if (block == nullptr) return;
  for (const size_t unit : units_of_.at(block)) read_ahead(owned_part(unit));
}

void GatheredUnits::leave_owned(size_t unit) const {
  if (in_files_) leave_to_file(owned_part(unit));
}

// Each rank sends its part of the unit to the others.
void GatheredUnits::begin(size_t index) {
  Unit& unit = units_[index];
  if (unit.begun) return;
  unit.begun = true;
  RECORD_USER_SCOPE(phase::reduce);
  const Range& elements = arena_.units()[index].elements;
  const Tensor& owned = arena_.parameter_values();
  const auto part_of = [&](const Range& range) {
    return owned.slice(0, range.begin - arena_.owned().begin, range.end - arena_.owned().begin);
  };
  if (!unit.owned) unit.buffer = buffers_.take(elements.size());
  for (size_t rank = 0; rank < arena_.shards().size(); ++rank) {
    const Range part = arena_.shards()[rank] & elements;
    if (part.size() == 0) continue;
    Tensor place = unit.owned ? part_of(part)
                              : unit.buffer.slice(0, part.begin - elements.begin, part.end - elements.begin);
    if (!unit.owned && static_cast<int>(rank) == group_.rank()) place.copy_(part_of(part));
    unit.works.push_back(group_.broadcast(place, static_cast<int>(rank)));
  }
}

void GatheredUnits::finish(size_t index) {
  Unit& unit = units_[index];
  if (unit.works.empty()) return;
  for (Work& work : std::exchange(unit.works, {})) work.wait();
  if (unit.owned) return;
  arena_.bind_values(index, unit.buffer);
  leave_owned(index);
}

void GatheredUnits::release(size_t index) {
  Unit& unit = units_[index];
  if (!unit.begun) return;
  for (Work& work : std::exchange(unit.works, {})) work.wait();
  unit.begun = false;
  unit.users = 0;
  if (unit.owned) return leave_owned(index);
  arena_.bind_values(index, {});
  if (unit.buffer.nbytes() > ScratchBuffers::largest_kept_bytes) release_pages(unit.buffer);
  buffers_.give_back(std::exchange(unit.buffer, {}));
}

}  // namespace stretto::parallel
