#include "stretto/lite/model.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/comm/holders.h"
#include "stretto/comm/mesh.h"
#include "stretto/parallel/replicas.h"

namespace stretto::lite {
namespace {

// Lite does not convert parameters: a module of another dtype than `precision` is an error.
void require_dtype(const parallel::ModuleTensors& tensors, Precision precision) {
  const at::ScalarType wanted = master_dtype(precision);
  for (const parallel::NamedParameter& parameter : tensors.trainable) {
    if (parameter.tensor.scalar_type() == wanted) continue;
    throw ConfigError(
        "setup: parameter {} is {}, but this precision requires {} parameters; call model->to(torch::{}) before setup, or set precision = \"{}\"",
        parameter.name, describe(parameter.tensor), c10::toString(wanted),
        wanted == at::kDouble ? "kDouble" : "kFloat",
        parameter.tensor.scalar_type() == at::kDouble ? "fp64" : "fp32");
  }
}

}  // namespace

std::string numbered(const char* what, size_t number) {
  return number == 0 ? what : fmt::format("{}{}", what, number);
}

Model::Model(size_t number, torch::nn::Module& module, const Mesh& mesh, const ModelOptions& options,
             std::unique_ptr<optim::Optimizer> optimizer)
    : number_(number),
      module_(module),
      kept_(module.weak_from_this().lock()),
      mesh_(mesh),
      options_(options),
      names_{.model = numbered("model", number), .optimizer = ""} {
  parallel::ModuleTensors tensors = parallel::collect_tensors(module);
  require_dtype(tensors, options.engine.precision);
  if (tensors.trainable.empty()) {
    frozen_ = std::move(tensors);
    parallel::broadcast_tensors(mesh_.world(), frozen_.frozen);
    parallel::broadcast_tensors(mesh_.world(), frozen_.buffers);
    return;
  }
  engine_ = std::make_unique<parallel::Engine>(module, mesh, options.engine, std::move(optimizer));
  used_.resize(engine_->facts().tensors.trainable.size(), 0);
}

parallel::Engine& Model::engine(const std::string& what) const {
  if (engine_) return *engine_;
  throw ConfigError("{}: model {} has no trainable parameters", what, number_);
}

void Model::set_optimizer_number(size_t number) { names_.optimizer = numbered("optimizer", number); }

Holders Model::holders() const { return comm::holders_of(mesh_.world()); }

void Model::add_state(State& state) {
  if (engine_) return engine_->add_state(state, names_);
  synchronise_buffers();
  for (const parallel::NamedTensorList* tensors : {&frozen_.frozen, &frozen_.buffers}) {
    for (const auto& [name, tensor] : *tensors)
      state.tensors.push_back(
          whole_entry(names_.model + "." + name, tensor.sizes().vec(), tensor.detach(), holders()));
  }
}

void Model::resume(const State& state) {
  if (!engine_) return;
  engine_->resume(state, names_);
  zero_grad();
}

void Model::compare_replicas() {
  if (engine_) engine_->compare_replicas();
}

void Model::synchronise_buffers() {
  if (engine_) return engine_->synchronise_buffers();
  parallel::broadcast_tensors(mesh_.world(), frozen_.buffers);
}

std::string Model::describe(const std::string& compute) const {
  const std::string title = fmt::format("model {}", number_);
  if (engine_) return parallel::describe(engine_->facts(), title, compute);
  return fmt::format("{:<11}no trainable parameters; {}, {}", title,
                     counted(static_cast<int64_t>(frozen_.frozen.size()), "frozen tensor"),
                     counted(static_cast<int64_t>(frozen_.buffers.size()), "buffer"));
}

void Model::abort_backward() {
  pass_.reset();
  gradients_were_zeroed();
}

bool Model::takes_part(const Tensor& loss, std::vector<Tensor>& others) {
  if (!engine_) return false;
  uses_ = engine_->uses(loss, &others);
  if (std::ranges::none_of(uses_, [](int uses) { return uses > 0; })) return false;
  if (window_.open && engine_->weights().fingerprint() != window_.fingerprint) {
    throw Error(
        "backward: the parameters of model {} were changed after its last backward under no_backward_sync, so ranks may have diverged; run the last backward before a step outside of no_backward_sync, and call zero_grad() of Lite's optimizer before any other change",
        number_);
  }
  const size_t dropped = engine_->gradients().restore_dropped();
  if (dropped == used_.size()) {  // zero_grad() of the module or of torch's optimizer was called
    window_ = {};
    reduced_ = false;
    held_ = Tensor();
    std::ranges::fill(used_, 0);
  }
  for (size_t i = 0; i < uses_.size(); ++i) used_[i] |= uses_[i] > 0;
  return true;
}

bool Model::holds(const Tensor& tensor) const {
  return engine_ && std::ranges::any_of(tensors().trainable, [&](const parallel::NamedParameter& parameter) {
           return parameter.tensor.is_same(tensor);
         });
}

void Model::begin_backward(bool synchronises) {
  pass_.emplace(
      engine_->open(std::move(uses_), synchronises ? parallel::Reduce::last : parallel::Reduce::never));
}

void Model::end_backward(bool synchronises) {
  pass_->close();
  pass_.reset();
  // Torch's optimizers leave no other trace of a step.
  if (!synchronises) window_.fingerprint = engine_->weights().fingerprint();
}

void Model::extend_window(std::optional<double> count) {
  if (window_.open && window_.count.has_value() != count.has_value()) {
    throw Error(
        "backward: a mean (Tensor) and a sum with its count (Loss) cannot be accumulated into the same gradients; pass the same kind of loss to every backward of a step");
  }
  if (reduced_) {
    held_ = engine_->gradients().held().clone();
    engine_->gradients().held().zero_();
    reduced_ = false;
  }
  window_.open = true;
  if (count) window_.count = window_.count.value_or(0) + *count;
}

void Model::finish(const Divisors& divisors, bool has_unused, double loss) {
  last_loss_ = loss;
  engine_->finish();
  Tensor grad = engine_->gradients().held();
  if (window_.count) {
    if (divisors.count <= 0) {
      throw DataError("backward: the losses of all ranks count {} samples; expected more than 0",
                      divisors.count);
    }
    if (divisors.count != 1) grad.div_(divisors.count);
  }
  if (divisors.scale != 1) grad.div_(divisors.scale);
  if (held_.defined()) grad.add_(held_);
  held_ = Tensor();
  window_ = {};
  reduced_ = true;
  if (has_unused && options_.skips_unused) drop_unused();
}

// Makes the gradients of unused parameters undefined, like torch on one rank, so that torch::optim skips
// these parameters.
void Model::drop_unused() {
  Tensor used = at::from_blob(used_.data(), {static_cast<int64_t>(used_.size())}, at::kByte).clone();
  if (Group& ranks = mesh_.group(Axes::sum); ranks.size() > 1) {
    used = used.to(ranks.device());
    ranks.all_reduce(used, ReduceOp::max).wait();
    used = used.to(at::kCPU);
  }
  for (size_t i = 0; i < used_.size(); ++i) {
    if (used.const_data_ptr<uint8_t>()[i] != 0) continue;
    Tensor parameter = tensors().trainable[i].tensor;
    parameter.mutable_grad() = Tensor();
  }
}

bool Model::has_unused() const {
  return options_.skips_unused && std::ranges::any_of(used_, [](uint8_t used) { return used == 0; });
}

bool Model::overflowed() const { return !std::isfinite(engine_->gradients().norm()); }

void Model::zero_grad() {
  engine_->gradients().restore_dropped();
  engine_->gradients().clear();
  gradients_were_zeroed();
}

void Model::zero_grad(const std::set<size_t>& parameters) {
  engine_->gradients().restore_dropped();
  engine_->gradients().clear([&](size_t parameter) { return parameters.contains(parameter); });
  for (const size_t parameter : parameters) used_[parameter] = 0;
}

void Model::gradients_were_zeroed() {
  window_ = {};
  reduced_ = false;
  held_ = Tensor();
  std::ranges::fill(used_, 0);
}

void Model::require_gradients(const std::string& what) const {
  if (window_.open) {
    throw Error(
        "{}: the gradients of model {} were not reduced over ranks: run the last backward before a step outside of no_backward_sync",
        what, number_);
  }
  if (!reduced_) throw Error("{}: model {} has no gradients; call Lite::backward first", what, number_);
}

}  // namespace stretto::lite
