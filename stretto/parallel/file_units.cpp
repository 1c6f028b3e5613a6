#include "stretto/parallel/file_units.h"

#include "stretto/tensor/file_memory.h"

namespace stretto::parallel {

FileUnits::FileUnits(torch::nn::Module& root, const Arena& arena) : arena_(arena) {
  std::map<std::string, std::vector<Range>> by_name;
  for (const Arena::Unit& unit : arena.units()) by_name[unit.name].push_back(unit.elements);
  for (nn::Block* block : nn::collect_blocks(root)) {
    if (block->path().empty() || !by_name.contains(block->path())) continue;
    blocks_.push_back(block);
    elements_of_[block] = by_name.at(block->path());
    block->observe(this);
  }
}

FileUnits::~FileUnits() {
  for (nn::Block* block : blocks_) block->observe(nullptr);
}

void FileUnits::each_part(const nn::Block& block, void (*use)(const Tensor&)) const {
  for (const Range& elements : elements_of_.at(&block))
    use(arena_.parameter_values().slice(0, elements.begin, elements.end));
}

void FileUnits::open(const nn::Block& block, size_t pass) {
  order_.add(block, pass);
  if (const nn::Block* next = order_.after(block, pass)) each_part(*next, read_ahead);
}

void FileUnits::close(const nn::Block& block) noexcept { each_part(block, leave_to_file); }

}  // namespace stretto::parallel
