#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "stretto/checkpoint/writer.h"
#include "stretto/comm/job.h"
#include "stretto/comm/mesh.h"
#include "stretto/lite/agreement.h"
#include "stretto/lite/lite.h"
#include "stretto/lite/model.h"
#include "stretto/lite/optimizer_backend.h"
#include "stretto/lite/ranks.h"
#include "stretto/parallel/loss_scale.h"
#include "stretto/parallel/matmul_libraries.h"
#include "stretto/parallel/random_state.h"

namespace stretto::lite {

// The state of a Lite: the job, and the models and optimizers that the program has set up.
struct Session {
  explicit Session(const LiteOptions& options);

  ProcessHook hook;
  Settings settings;
  comm::Job job;
  Mesh mesh;
  Agreement agreement;
  Loop loop;
  std::deque<Model> models;
  std::vector<std::unique_ptr<OptimizerBackend>> optimizers;
  std::vector<torch::optim::LRScheduler*> schedulers;  // the caller's
  std::map<std::filesystem::path, std::unique_ptr<checkpoint::Writer>> writers;
  parallel::LossScale loss_scale;
  // The gradients since the last synchronising backward have this scale; a step of another model must not
  // change it.
  double scale_in_use = 1;
  parallel::RandomState random;
  std::unique_ptr<parallel::MatmulLibraries> products;  // of the first model with stretto::nn layers, on CPU
};

}  // namespace stretto::lite
