#include "stretto/data/dataset.h"

#include "stretto/base/progress_bar.h"
#include "stretto/base/stream_hash.h"
#include "stretto/data/sample_lengths.h"

namespace stretto::data {
namespace {

void add_tensor(StreamHash& hash, const std::string& name, const Tensor& tensor) {
  if (!tensor.defined()) return;
  const Tensor dense = tensor.layout() == at::kStrided ? tensor : tensor.to_dense();
  const Tensor content = dense.cpu().contiguous();
  hash.add(fmt::format("{} {}\n", name, describe(content)));
  hash.add({static_cast<const char*>(content.const_data_ptr()), content.nbytes()});
}

std::string fingerprint_of_tensors(const Dataset& dataset) {
  StreamHash hash;
  ProgressBar bar("hashing the samples", dataset.size(), "samples");
  for (int64_t sample = 0; sample < dataset.size(); ++sample) {
    const Batch batch = dataset.pack({&sample, 1});
    for (const auto& [name, tensor] : batch.tensors) {
      // Places that equal the positions add no information, and older fingerprints exclude them.
      if (name == "places" && batch.has("position_ids") && tensor.is_same(batch.at("position_ids"))) continue;
      add_tensor(hash, name, tensor);
    }
    bar.add();
  }
  return fmt::format("{}{:016x}", hash_of_tensors, hash.value());
}

}  // namespace

SampleLengths lengths_of(const Dataset& dataset) {
  return {dataset.size(), [&dataset](int64_t sample) { return dataset.length_of(sample); }};
}

int64_t Dataset::total_length() const { return lengths_of(*this).total(); }

std::string Dataset::fingerprint() const {
  return fingerprint_of_tensors_.get([this] { return fingerprint_of_tensors(*this); });
}

}  // namespace stretto::data
