#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "stretto/checkpoint/source.h"
#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"

namespace stretto::trainer {

// A checkpoint that the Trainer saved, as the source of the state of a run by a recipe.
class RunCheckpoint : public StateSource {
 public:
  // Throws DataError if another program wrote the checkpoint, and ConfigError if settings that affect results
  // differ and the recipe does not accept that. Collective.
  RunCheckpoint(const Recipe& recipe, const Mesh& mesh, const std::filesystem::path& checkpoint);

  // Whether it belongs to the run in the recipe's output folder. The same on all ranks.
  bool continues_folder() const { return continues_folder_; }

  std::set<std::string> tensors() const override { return source_.tensors(); }
  // Omits the best models of another folder, which are not this run's.
  void fill(State& state) override;

 private:
  const Mesh& mesh_;
  std::filesystem::path path_;
  bool continues_folder_;
  checkpoint::Source source_;
};

// The checkpoint that `resume` of the recipe selects; null if the run starts from the beginning. Collective.
// Throws ConfigError if a required checkpoint is missing, DataError if no checkpoint is valid, and like
// RunCheckpoint().
std::unique_ptr<RunCheckpoint> find_checkpoint(const Recipe& recipe, const Mesh& mesh);

// The newest checkpoint of the run in the recipe's output folder; null if there is none. Collective. Throws
// like find_checkpoint().
std::unique_ptr<RunCheckpoint> newest_checkpoint(const Recipe& recipe, const Mesh& mesh);

}  // namespace stretto::trainer
