#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/weights/safetensors_header.h"

namespace stretto::weights {

// Called with the size of each part that was written.
using Progress = std::function<void(int64_t bytes)>;

// The stored weights of a model, and the function that reads them: `read` passes the elements of a weight to
// `use`, in row-major order and in parts.
struct Weights {
  using Use = std::function<void(std::string_view bytes)>;
  std::vector<weights::SafetensorsTensor> stored;  // in the order of writing
  std::function<void(const std::string& name, const Use& use)> read;
};

// Describes tensors as they are written: floating-point ones as `dtype` ("bfloat16"); unset: unchanged.
std::vector<weights::SafetensorsTensor> as_written(std::vector<weights::SafetensorsTensor> stored,
                                                   const std::optional<std::string>& dtype);

// The bytes of these tensors.
int64_t bytes_of(const std::vector<weights::SafetensorsTensor>& tensors);

// Writes weights into `folder` as shards.h divides them, with an index if there are several files.
void write_weights(const Weights& weights, const std::filesystem::path& folder, int64_t max_shard_bytes,
                   const std::optional<std::string>& dtype, const Progress& progress);

// The text of a config.json with another dtype of weights. `name` is the file. Throws DataError if it is not
// a JSON object.
std::string with_dtype(const std::string& config, const std::string& name, const std::string& dtype);

}  // namespace stretto::weights
