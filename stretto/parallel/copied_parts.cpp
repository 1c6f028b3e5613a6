#include "stretto/parallel/copied_parts.h"

#include <numeric>
#include <set>

#include "stretto/parallel/arena.h"

namespace stretto::parallel {

int copies_of(const TensorLayout& layout) { return layout.cuts.empty() ? 1 : layout.cuts[0].copies; }

CopiedParts::CopiedParts(Group& ranks, const std::vector<NamedParameter>& parameters) : ranks_(ranks) {
  std::set<int> numbers;
  for (const NamedParameter& parameter : parameters) numbers.insert(copies_of(parameter.layout));
  for (const int copies : numbers) {
    if (copies == 1) continue;
    for (int first = 0; first < ranks.size(); first += copies) {
      std::vector<int> neighbours(static_cast<size_t>(copies));
      std::iota(neighbours.begin(), neighbours.end(), first);
      if (auto group = ranks.subgroup(neighbours, "copies of parts")) groups_[copies] = std::move(group);
    }
  }
}

bool CopiedParts::is_first(const TensorLayout& layout) const {
  return ranks_.rank() % (layout.cuts.empty() ? ranks_.size() : copies_of(layout)) == 0;
}

void CopiedParts::sum_gradients(const Arena& arena, const Range& held) const {
  std::vector<Work> works;
  for (const Arena::Parameter& parameter : arena.parameters()) {
    const auto group = groups_.find(copies_of(parameter.info.layout));
    const Range part = held & Range{parameter.begin, parameter.end};
    if (group != groups_.end() && part.size() > 0)
      works.push_back(group->second->all_reduce(arena.gradients(part)));
  }
  for (Work& work : works) work.wait();
}

}  // namespace stretto::parallel
