#include "stretto/checkpoint/source.h"

#include "stretto/checkpoint/load.h"

namespace stretto::checkpoint {

Source::Source(Group& group, const std::filesystem::path& checkpoint, const std::filesystem::path& scratch,
               std::chrono::milliseconds patience, OptionNames names)
    : group_(group), readable_(group, checkpoint, scratch, patience), names_(std::move(names)) {}

std::set<std::string> Source::tensors() const {
  std::set<std::string> names;
  for (const auto& [name, entry] : manifest().tensors) names.insert(name);
  return names;
}

void Source::fill(State& state) {
  readable_.fetch(state);
  load(group_, readable_.path(), state, names_);
}

}  // namespace stretto::checkpoint
