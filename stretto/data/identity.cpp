#include "stretto/data/identity.h"

#include <array>

#include <fmt/format.h>

#include "stretto/base/stream_hash.h"
#include "stretto/data/sample_lengths.h"

namespace stretto::data {
namespace {

// Older checkpoints have no fingerprint, or one of the lengths only for a dataset that now hashes its
// tensors.
bool has_other_contents(const nlohmann::json& saved, const std::string& here) {
  if (!saved.contains("fingerprint")) return false;
  const auto& before = saved.at("fingerprint").get_ref<const std::string&>();
  if (here.starts_with(hash_of_tensors) && !before.starts_with(hash_of_tensors)) return false;
  return before != here;
}

// hash64() of all lengths as int32, read in parts.
uint64_t hash_of(const SampleLengths& lengths) {
  StreamHash hash;
  std::array<int32_t, 4096> part;
  size_t filled = 0;
  const auto add = [&] { hash.add({reinterpret_cast<const char*>(part.data()), filled * sizeof part[0]}); };
  for (int64_t sample = 0; sample < lengths.size; ++sample) {
    part[filled++] = lengths.of(sample);
    if (filled < part.size()) continue;
    add();
    filled = 0;
  }
  add();
  return hash.value();
}

}  // namespace

nlohmann::json identify(const Dataset& dataset) {
  if (dataset.block_size() > 0) return {{"samples", dataset.size()}, {"fingerprint", dataset.fingerprint()}};
  return {{"samples", dataset.size()},
          {"lengths_hash", hash_of(lengths_of(dataset))},
          {"fingerprint", dataset.fingerprint()}};
}

std::string difference(const std::string& name, const nlohmann::json& saved, const Dataset& dataset) {
  const nlohmann::json here = identify(dataset);
  const auto differs = [&](const char* key) {
    return saved.contains(key) && here.contains(key) && saved.at(key) != here.at(key);
  };
  const std::string samples = here.at("samples").dump();
  if (differs("samples"))
    return fmt::format("{} holds {} samples here and {} in the run to resume", name, samples,
                       saved.at("samples").dump());
  const bool other_lengths = differs("lengths_hash");
  if (!other_lengths && !has_other_contents(saved, here.at("fingerprint"))) return "";
  return fmt::format("{} is not the data of the run to resume: the number of samples ({}) is equal, but {}",
                     name, samples,
                     other_lengths ? "their lengths differ" : "texts, tokens or labels differ");
}

}  // namespace stretto::data
