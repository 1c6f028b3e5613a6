#include "stretto/trainer/folder/checkpoints.h"

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/config/requested_checkpoint.h"
#include "stretto/trainer/api/module.h"

namespace stretto::trainer {

Checkpoints::Checkpoints(const Recipe& recipe, const Mesh& mesh, const Module& module, bool holds_state)
    : recipe_(recipe),
      mesh_(mesh),
      module_(module),
      every_(recipe.checkpoint.every, mesh.world().rank() == 0),
      holds_state_(holds_state) {}

std::unique_ptr<StateSource> Checkpoints::newest(const std::string& reason) {
  if (writer_) writer_->finish();
  auto checkpoint = newest_checkpoint(recipe_, mesh_);
  if (!checkpoint) throw Error("{}; there is no checkpoint to roll back to yet", reason);
  log::warning("{}; rolling back to the last checkpoint, with the learning rate multiplied by {:g}", reason,
               recipe_.training.rollback_lr_factor);
  return checkpoint;
}

Requests Checkpoints::requests() const {
  Requests requests = signals_.take();
  requests.save |= every_.requested();
  return requests;
}

bool Checkpoints::due(const StepReport& report, std::optional<int64_t> evaluation, bool last,
                      bool stops) const {
  if (report.requests.save || report.requests.stop || stops) return true;
  // A checkpoint saved on request must not remain the newest one at the end of the run.
  if (last) return holds_state_ || !every_.every().never();
  return every_.due(report, /*requested=*/false, evaluation);
}

void Checkpoints::save(State state, const StepReport& report, bool last,
                       std::optional<checkpoint_format::Score> score) {
  if (!writer_) {
    const CheckpointConfig& config = recipe_.checkpoint;
    writer_ = std::make_unique<checkpoint::Writer>(
        mesh_.world(),
        checkpoint::WriterOptions{
            .folder = checkpoints_of(recipe_),
            .background = config.async,
            .wait_when_busy = config.when_busy == WhenBusy::wait,
            .retention = {.last = config.keep_last,
                          .best = config.keep_best,
                          .every_steps = config.keep_every.value_or(0)},
            .snapshot_folder = offload_folder(recipe_).value_or(parameter_folder(recipe_).value_or("")),
            .patience = config.wait_for_folder(),
            .write_companions = [this](const auto& folder) { module_.save_companions(folder); }});
  }
  holds_state_ = true;
  state.scalars["recipe"] = computing_settings(recipe_);
  state.scalars["place"]["epochs"] = report.epochs;
  if (last) writer_->finish();
  writer_->save(state, report.step, std::move(score));
  every_.restart();
}

std::string Checkpoints::finish() {
  const std::string error = writer_ ? writer_->finish() : "";
  return error.empty() ? "" : "the last checkpoint was not saved: " + error;
}

}  // namespace stretto::trainer
