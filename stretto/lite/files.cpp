#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint/source.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/lite/session.h"
#include "stretto/lite/torch_state.h"

// Checkpoints and tensor files of Lite programs.
namespace stretto {
namespace {

void add_schedulers(State& state, const std::vector<torch::optim::LRScheduler*>& schedulers) {
  if (schedulers.empty()) return;
  nlohmann::json steps = nlohmann::json::array();
  for (torch::optim::LRScheduler* scheduler : schedulers) steps.push_back(lite::scheduler_steps(*scheduler));
  state.scalars["schedulers"] = steps;
}

void resume_schedulers(const State& state, const std::vector<torch::optim::LRScheduler*>& schedulers) {
  std::vector<unsigned> steps;
  if (state.scalars.contains("schedulers")) state.scalars.at("schedulers").get_to(steps);
  if (steps.size() != schedulers.size()) {
    throw DataError(
        "load: the checkpoint holds the counters of {}, and this program has registered {}; call register_for_checkpointing before load, for the same schedulers as in the run that saved",
        counted(std::ssize(steps), "scheduler"), schedulers.size());
  }
  for (size_t i = 0; i < steps.size(); ++i) lite::scheduler_steps(*schedulers[i]) = steps[i];
}

}  // namespace

State Lite::state(std::optional<std::set<std::string>> stored) {
  State state;
  state.stored = std::move(stored);
  for (lite::Model& model : session_->models) model.add_state(state);
  for (size_t i = 0; i < session_->optimizers.size(); ++i)
    session_->optimizers[i]->add_state(state, lite::numbered("optimizer", i));
  session_->loss_scale.add_state(state);
  session_->random.add_state(state);
  if (session_->products) session_->products->add_state(state);
  return state;
}

std::filesystem::path Lite::save(const std::filesystem::path& folder, const SaveOptions& options) {
  session_->agreement.agree({.act = lite::Act::save, .number = options.step});
  for (lite::Model& model : session_->models) model.compare_replicas();
  auto& writer = session_->writers[folder];
  if (!writer) {
    writer = std::make_unique<checkpoint::Writer>(
        mesh().world(), checkpoint::WriterOptions{
                            .folder = folder, .background = false, .retention = {.last = options.keep_last}});
  }
  State table = state();
  table.scalars["extra"] = options.extra;
  nlohmann::json epochs = nlohmann::json::array();
  for (const lite::LoaderRecord& loader : session_->loop.records()) epochs.push_back(loader.epochs);
  table.scalars["loaders"] = epochs;
  add_schedulers(table, session_->schedulers);
  writer->save(table, options.step);
  const std::string error = writer->finish();
  if (!error.empty()) throw IoError("save: {}", error);
  return checkpoint_format::checkpoint_path(folder, options.step);
}

std::optional<nlohmann::json> Lite::load(const std::filesystem::path& folder) {
  session_->agreement.agree({.act = lite::Act::load});
  const auto chosen =
      checkpoint::choose(mesh().world(), [&]() -> std::optional<checkpoint_format::Checkpoint> {
        if (!std::filesystem::exists(folder / checkpoint_format::manifest_name))
          return checkpoint_format::newest_good(folder);
        checkpoint_format::verify(folder);
        return checkpoint_format::Checkpoint{checkpoint_format::read_manifest(folder).step, folder};
      });
  if (!chosen) return std::nullopt;

  checkpoint::Source source(mesh().world(), *chosen, chosen->parent_path());
  if (!source.manifest().scalars.contains("extra")) {
    throw DataError("load: {} is not a checkpoint of a Lite program; resume it with `stretto train`",
                    chosen->string());
  }
  State table = state(source.tensors());
  source.fill(table);
  for (lite::Model& model : session_->models) model.resume(table);
  for (size_t i = 0; i < session_->optimizers.size(); ++i)
    session_->optimizers[i]->resume(table, lite::numbered("optimizer", i));
  resume_schedulers(table, session_->schedulers);
  session_->loss_scale.resume(table);
  session_->random.resume(table);
  if (session_->products) session_->products->resume(table);
  const auto epochs = table.scalar("loaders").get<std::vector<int64_t>>();
  session_->loop.resume(epochs);
  log::info("loaded     {}", chosen->string());
  return table.scalar("extra");
}

void Lite::save_tensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  session_->agreement.agree({.act = lite::Act::save});
  std::string error;
  if (is_global_zero()) {
    try {
      save_safetensors(path, tensors);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
  }
  error = mesh().world().broadcast_bytes(error, 0);
  if (!error.empty()) throw IoError("save_tensors: {}", error);
}

NamedTensors Lite::load_tensors(const std::filesystem::path& path) const {
  NamedTensors tensors = SafetensorsFile(path).load_all();
  for (auto& [name, tensor] : tensors) tensor = tensor.to(device());
  return tensors;
}

}  // namespace stretto
