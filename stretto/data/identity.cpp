#include "stretto/data/identity.h"

#include <fmt/format.h>

#include "stretto/base/hash.h"

namespace stretto::data {
namespace {

// Older checkpoints have no fingerprint, or one of lengths alone where a dataset now hashes its tensors.
bool has_other_contents(const nlohmann::json& saved, const std::string& here) {
  if (!saved.contains("fingerprint")) return false;
  const auto& before = saved.at("fingerprint").get_ref<const std::string&>();
  if (here.starts_with(hash_of_tensors) && !before.starts_with(hash_of_tensors)) return false;
  return before != here;
}

}  // namespace

nlohmann::json identify(const Dataset& dataset) {
  const auto lengths = dataset.lengths();
  return {{"samples", dataset.size()},
          {"lengths_hash", hash64({reinterpret_cast<const char*>(lengths.data()), lengths.size_bytes()})},
          {"fingerprint", dataset.fingerprint()}};
}

std::string difference(const std::string& name, const nlohmann::json& saved, const Dataset& dataset) {
  const nlohmann::json here = identify(dataset);
  const auto differs = [&](const char* key) { return saved.contains(key) && saved.at(key) != here.at(key); };
  const std::string samples = here.at("samples").dump();
  if (differs("samples"))
    return fmt::format("{} holds {} samples here and {} in the run to resume", name, samples,
                       saved.at("samples").dump());
  const bool other_lengths = differs("lengths_hash");
  if (!other_lengths && !has_other_contents(saved, here.at("fingerprint"))) return "";
  return fmt::format("{} is not the data of the run to resume: as many samples ({}), but {}", name, samples,
                     other_lengths ? "of other lengths" : "with other texts, tokens or labels");
}

}  // namespace stretto::data
