#include "stretto/trainer/run/serve_evaluations.h"

#include <cmath>
#include <csignal>

#include <sys/prctl.h>

#include <ATen/Parallel.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/log_setup.h"
#include "stretto/data/identity.h"
#include "stretto/tensor/finite.h"
#include "stretto/trainer/api/teachers.h"
#include "stretto/trainer/run/compute_precision.h"
#include "stretto/trainer/run/evaluate.h"
#include "stretto/trainer/run/matmul_libraries.h"
#include "stretto/trainer/run/message_socket.h"

namespace stretto::trainer {
namespace {

// The run ends this process: signals that ask the run to stop or to save are its own.
void leave_signals_to_the_run() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(signal, SIG_IGN);
}

void require_samples_of_run(const std::vector<ValidationSamples>& sets, const nlohmann::json& expected) {
  nlohmann::json own = nlohmann::json::object();
  for (const ValidationSamples& samples : sets) own[samples.set] = data::identify(samples.get());
  if (own == expected) return;
  throw ConfigError(
      "the validation samples of the process that evaluates are not those of the run: its files have changed, or the program calls fit() several times; remove evaluate.async");
}

bool are_finite(const Metrics& metrics) {
  return std::ranges::all_of(metrics, [](const auto& metric) { return std::isfinite(metric.second); });
}

// The module of this process, which takes the weights of snapshots.
class Served {
 public:
  Served(const Recipe& recipe, Module& module, const Mesh& mesh, at::Device device,
         const std::vector<ValidationSamples>& sets)
      : recipe_(recipe), module_(module), mesh_(mesh), sets_(sets) {
    if (recipe.training.deterministic) at::set_num_threads(1);
    read_parameters(module);
    module.root().to(device, master_dtype(recipe.training.precision));
    place_teachers(module, device, recipe.training.precision, mesh);
    compute_ = compute_precision(module.root(), recipe.training.precision);
    pass_ = {.device = device, .autocast = compute_.autocast};
    products_ = choose_matmul_libraries(recipe, module.root(), sets.front().get(),
                                        evaluation_batch_size(recipe), compute_.parameters, mesh, device);
  }

  Validated evaluate(const std::filesystem::path& weights) {
    read_weights_file(module_, weights);
    const ComputeCopies copies(module_.root(), compute_);
    Validated result = validate(recipe_, module_, mesh_, pass_, sets_);
    if (!are_finite(result.metrics)) return result;
    if (!recipe_.checkpoint.allow_nonfinite) require_finite_weights();
    result.texts = continue_texts(recipe_, module_, mesh_, pass_);
    return result;
  }

 private:
  void require_finite_weights() const {
    for (const auto& parameter : module_.root().named_parameters()) {
      if (!is_finite(parameter.value()))
        throw Error("the weights overflowed: {} holds NaN or infinity; lower optimizer.lr", parameter.key());
    }
  }

  const Recipe& recipe_;
  Module& module_;
  const Mesh& mesh_;
  const std::vector<ValidationSamples>& sets_;
  ComputePrecision compute_{};
  ValidationPass pass_{at::kCPU};
  std::optional<parallel::MatmulLibraries> products_;
};

}  // namespace

void serve_evaluations(const Recipe& recipe, Module& module, const Mesh& mesh, at::Device device,
                       const std::vector<ValidationSamples>& sets, int socket) {
  leave_signals_to_the_run();
  log::release_file();
  MessageSocket run{Fd(socket)};
  std::optional<Served> served;
  while (!run.ended()) {
    const auto request = run.receive(std::chrono::hours(1));
    if (!request) continue;
    nlohmann::json reply = {{"id", request->at("id")}};
    try {
      require_samples_of_run(sets, request->at("validation"));
      if (!served) served.emplace(recipe, module, mesh, device, sets);
      reply["result"] = served->evaluate(request->at("weights").get<std::string>()).to_json();
    } catch (const std::exception& error) {
      reply["error"] = error.what();
    }
    log::info("evaluated  step {}", request->at("step").get<int64_t>());
    run.send(reply);
  }
  log::flush();
  ::_exit(0);
}

}  // namespace stretto::trainer
