#include "stretto/parallel/first_values.h"

#include <cstring>
#include <map>

#include "stretto/base/hash.h"
#include "stretto/nn/parameter_values.h"
#include "stretto/parallel/replicas.h"

namespace stretto::parallel {
namespace {

// Elements of a parameter, and the hash of their values.
struct HashedPart {
  Range elements;
  uint64_t hash;
};

std::string bytes_of(const std::vector<HashedPart>& parts) {
  return {reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(HashedPart)};
}

HashedPart part_of(const std::string& bytes, size_t index) {
  HashedPart part{};
  std::memcpy(&part, bytes.data() + index * sizeof part, sizeof part);
  return part;
}

}  // namespace

void FirstValues::read_part(const HeldValues& part) const {
  const auto& [parameter, elements, values] = part;
  if (source_ == nullptr || !source_->has(parameter.name)) return read_in_place({&part, 1});
  at::NoGradGuard no_grad;
  read_elements(*source_, parameter.name, parameter.layout, elements, values);
}

// The hash of rank 0's values of elements that another rank holds.
uint64_t FirstValues::checksum_of(const HeldValues& local, const Range& elements) const {
  const Range& held = local.elements;
  if ((held & elements) == elements)
    return checksum(local.values.slice(0, elements.begin - held.begin, elements.end - held.begin));
  const Tensor values = at::empty({elements.size()}, local.values.options());
  read_part({local.parameter, elements, values});
  return checksum(values);
}

bool FirstValues::agree(std::span<const HeldValues> held) const {
  std::vector<HashedPart> local;
  for (const HeldValues& part : held) local.push_back({part.elements, checksum(part.values)});
  const std::vector<std::string> all = group_.all_gather_bytes(bytes_of(local));
  bool equal = true;
  for (size_t i = 0; i < held.size() && group_.rank() == 0; ++i) {
    std::map<std::pair<int64_t, int64_t>, uint64_t> known;  // hashes of rank 0's values
    for (size_t rank = 1; rank < all.size() && equal; ++rank) {
      const auto [elements, hash] = part_of(all[rank], i);
      if (elements.size() == 0) continue;
      const auto [found, is_new] = known.try_emplace({elements.begin, elements.end});
      if (is_new) found->second = checksum_of(held[i], elements);
      equal = hash == found->second;
    }
  }
  return !group_.broadcast_bytes(equal ? "yes" : "", 0).empty();
}

void FirstValues::read(std::span<const HeldValues> held) const {
  for (const HeldValues& part : held) read_part(part);
  if (group_.size() == 1 || agree(held)) return;
  for (const HeldValues& part : held) {
    const Range whole = {0, part.parameter.tensor.numel()};
    const Tensor values = at::empty({whole.size()}, part.values.options());
    if (group_.rank() == 0) read_part({part.parameter, whole, values});
    group_.broadcast(values, 0).wait();
    part.values.copy_(values.slice(0, part.elements.begin, part.elements.end));
  }
}

void FirstValues::fill(const NamedTensorList& parameters) const {
  std::vector<uint64_t> checksums;
  for (const auto& [name, tensor] : parameters) {
    if (source_ != nullptr && source_->has(name))
      nn::fill_parameter(name, tensor, {tensor.sizes().vec()}, *source_);
    if (group_.size() > 1) checksums.push_back(checksum(tensor));
  }
  if (group_.size() > 1 && first_divergent_rank(group_, hash64(checksums)))
    broadcast_tensors(group_, parameters);
}

}  // namespace stretto::parallel
