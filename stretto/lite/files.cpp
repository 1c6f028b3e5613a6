#include <cstring>

#include "stretto/archive/folder.h"
#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/checkpoint/load.h"
#include "stretto/lite/lite.h"
#include "stretto/lite/random.h"

// What a Lite program keeps in files.
namespace stretto {
namespace {

// "model.", and from the second on "model1.": a program with one model names its tensors as `stretto train` does.
std::string numbered(const char* what, size_t number) {
  return number == 0 ? what : fmt::format("{}{}", what, number);
}

void put_bytes(Tensor& tensor, const std::string& bytes) {
  tensor = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
}

std::string get_bytes(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace

// Random numbers are an entry for each of the ranks that wrote, held by that rank alone.
State Lite::state(const std::set<std::string>* stored, int writers) {
  State state;
  for (lite::Model& model : models_) {
    const std::string prefix = numbered("model", model.number()) + ".";
    if (Arena* arena = model.arena()) {
      for (const auto& parameter : arena->parameters()) {
        state.tensors.push_back(
            whole_entry(prefix + parameter.info.name, parameter.info.tensor.sizes().vec(),
                        arena->buffers().master.slice(0, parameter.begin, parameter.end)));
      }
    }
    for (const auto& [name, tensor] : model.tensors().constant)
      state.tensors.push_back(whole_entry(prefix + name, tensor.sizes().vec(), tensor.detach()));
  }
  for (size_t i = 0; i < optimizers_.size(); ++i)
    optimizers_[i]->add_state(state, numbered("optimizer", i), stored);
  put_bytes(random_state_, lite::random_state());
  for (int rank = 0; rank < writers; ++rank) {
    Entry entry = whole_entry(fmt::format("random.{}", rank), random_state_.sizes().vec(), random_state_);
    entry.replicated = false;
    if (rank != global_rank()) entry.pieces.clear();
    state.tensors.push_back(std::move(entry));
  }
  return state;
}

std::filesystem::path Lite::save(const std::filesystem::path& folder, const SaveOptions& options) {
  agreement_.meet({.act = lite::Act::save, .number = options.step});
  for (lite::Model& model : models_) {
    model.synchronise_buffers();
    model.compare_replicas();
  }
  auto& writer = writers_[folder];
  if (!writer) {
    writer = std::make_unique<checkpoint::Writer>(
        group(), checkpoint::WriterOptions{
                     .folder = folder, .background = false, .retention = {.last = options.keep_last}});
  }
  State table = state(nullptr, world_size());
  table.scalars["extra"] = options.extra;
  nlohmann::json epochs = nlohmann::json::array();
  for (const lite::LoaderRecord& loader : loop_.records()) epochs.push_back(loader.epochs);
  table.scalars["loaders"] = epochs;
  writer->save(table, options.step);
  const std::string error = writer->finish();
  if (!error.empty()) throw IoError("save: {}", error);
  return archive::checkpoint_path(folder, options.step);
}

std::optional<nlohmann::json> Lite::load(const std::filesystem::path& folder) {
  agreement_.meet({.act = lite::Act::load});
  // Rank 0 looks and all do as it says; what it throws ends the others too.
  std::string chosen;
  if (is_global_zero()) {
    if (std::filesystem::exists(folder / archive::manifest_name)) {
      archive::verify(folder);
      chosen = folder;
    } else if (const auto newest = archive::newest_good(folder)) {
      chosen = newest->path;
    }
  }
  chosen = group().broadcast_bytes(chosen, 0);
  if (chosen.empty()) return std::nullopt;

  const archive::Manifest manifest = archive::read_manifest(chosen);
  if (!manifest.scalars.contains("extra")) {
    throw DataError("load: {} is no checkpoint of a Lite program; `stretto train` goes on with it", chosen);
  }
  std::set<std::string> stored;
  for (const auto& [name, entry] : manifest.tensors) stored.insert(name);
  State table = state(&stored, manifest.world_size);
  checkpoint::load(chosen, table);
  for (lite::Model& model : models_) {
    if (model.arena() != nullptr) {
      model.arena()->refresh_compute();
      model.zero_grad();  // gradients of other weights
    }
    model.compare_replicas();
  }
  for (size_t i = 0; i < optimizers_.size(); ++i) optimizers_[i]->resume(table, numbered("optimizer", i));
  if (global_rank() < manifest.world_size) lite::set_random_state(get_bytes(random_state_));
  const auto epochs = table.scalars.at("loaders").get<std::vector<int64_t>>();
  loop_.resume(epochs);
  log::info("loaded     {}", chosen);
  return table.scalars.at("extra");
}

void Lite::save_tensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  agreement_.meet({.act = lite::Act::save});
  std::string error;
  if (is_global_zero()) {
    try {
      save_safetensors(path, tensors);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
  }
  error = group().broadcast_bytes(error, 0);
  if (!error.empty()) throw IoError("save_tensors: {}", error);
}

NamedTensors Lite::load_tensors(const std::filesystem::path& path) const {
  NamedTensors tensors = SafetensorsFile(path).load_all();
  for (auto& [name, tensor] : tensors) tensor = tensor.to(device());
  return tensors;
}

}  // namespace stretto
