#include "stretto/weights/write_weights.h"

#include <map>

#include "stretto/base/error.h"
#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/weights/float_types.h"
#include "stretto/weights/shards.h"
#include "stretto/weights/weight_files.h"

namespace stretto::weights {
namespace {

void write_shard(const Shard& shard, const std::filesystem::path& folder,
                 const std::map<std::string, std::string>& stored, const Weights& weights,
                 const Progress& progress) {
  FileWriter file(folder / shard.file);
  file.write(weights::safetensors_header(shard.tensors));
  for (const weights::SafetensorsTensor& tensor : shard.tensors) {
    const auto write = [&](std::string_view bytes) {
      file.write(bytes);
      progress(std::ssize(bytes));
    };
    const std::string& from = stored.at(tensor.name);
    if (from == tensor.dtype) {
      weights.read(tensor.name, write);
    } else {
      Cast cast(tensor.name, *find_float_type(from), *find_float_type(tensor.dtype), write);
      weights.read(tensor.name, [&](std::string_view bytes) { cast.add(bytes); });
    }
  }
  file.finish();
}

}  // namespace

std::vector<weights::SafetensorsTensor> as_written(std::vector<weights::SafetensorsTensor> stored,
                                                   const std::optional<std::string>& dtype) {
  if (!dtype) return stored;
  const std::string wanted(float_type(*dtype).name);
  for (weights::SafetensorsTensor& tensor : stored) {
    if (find_float_type(tensor.dtype) == nullptr) continue;
    tensor.bytes = tensor.bytes / checkpoint_format::element_bytes(tensor.dtype) *
                   checkpoint_format::element_bytes(wanted);
    tensor.dtype = wanted;
  }
  return stored;
}

int64_t bytes_of(const std::vector<weights::SafetensorsTensor>& tensors) {
  int64_t bytes = 0;
  for (const weights::SafetensorsTensor& tensor : tensors) bytes += tensor.bytes;
  return bytes;
}

void write_weights(const Weights& weights, const std::filesystem::path& folder, int64_t max_shard_bytes,
                   const std::optional<std::string>& dtype, const Progress& progress) {
  std::map<std::string, std::string> stored;
  for (const weights::SafetensorsTensor& tensor : weights.stored) stored[tensor.name] = tensor.dtype;
  const std::vector<Shard> shards = plan_shards(as_written(weights.stored, dtype), max_shard_bytes);
  for (const Shard& shard : shards) write_shard(shard, folder, stored, weights, progress);
  if (shards.size() > 1)
    write_file_atomic(folder / weights::weights_index_name, shard_index(shards).dump(2) + "\n");
}

std::string with_dtype(const std::string& config, const std::string& name, const std::string& dtype) {
  const auto checked = parse_json(config, name);  // names the position of a mistake, but sorts the keys
  if (!checked.is_object()) throw DataError("{}: a JSON {}; expected an object", name, checked.type_name());
  auto json = nlohmann::ordered_json::parse(config);
  json["torch_dtype"] = dtype;
  return json.dump(2) + "\n";
}

}  // namespace stretto::weights
