#include "stretto/lite/model.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"

namespace stretto::lite {
namespace {

void collect_buffers(const torch::nn::Module& module, std::vector<Tensor>& buffers) {
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    if (item.value().defined()) buffers.push_back(item.value());
  }
  for (const auto& child : module.named_children()) collect_buffers(*child.value(), buffers);
}

std::vector<int64_t> versions(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> result;
  for (const Tensor& tensor : tensors) result.push_back(static_cast<int64_t>(tensor._version()));
  return result;
}

// Rank 0's values for all, one message a type.
void broadcast(Group& group, const std::vector<Tensor>& tensors) {
  if (group.size() == 1) return;
  at::NoGradGuard no_grad;
  std::map<at::ScalarType, std::vector<Tensor>> by_type;
  for (const Tensor& tensor : tensors) by_type[tensor.scalar_type()].push_back(tensor.detach());
  for (const auto& [type, alike] : by_type) {
    std::vector<Tensor> flat;
    for (const Tensor& tensor : alike) flat.push_back(tensor.reshape({-1}));
    Tensor values = at::cat(flat);
    group.broadcast(values, 0).wait();
    int64_t begin = 0;
    for (const Tensor& tensor : alike) {
      tensor.copy_(values.slice(0, begin, begin + tensor.numel()).view_as(tensor));
      begin += tensor.numel();
    }
  }
}

// Lite converts nobody's parameters: a module in another type than `precision` is a slip.
void require_dtype(const ModuleTensors& tensors, Precision precision) {
  const at::ScalarType wanted = master_dtype(precision);
  for (const NamedParameter& parameter : tensors.trained) {
    if (parameter.tensor.scalar_type() == wanted) continue;
    throw ConfigError(
        "setup: parameter {} is {}, but the run's precision needs {} parameters; call model->to(torch::{}) before setup, or set precision = \"{}\"",
        parameter.name, describe(parameter.tensor), c10::toString(wanted),
        wanted == at::kDouble ? "kDouble" : "kFloat",
        parameter.tensor.scalar_type() == at::kDouble ? "fp64" : "fp32");
  }
}

}  // namespace

Model::Model(size_t number, torch::nn::Module& module, Group& group, const ModelOptions& options)
    : number_(number),
      module_(module),
      kept_(module.weak_from_this().lock()),
      group_(group),
      options_(options),
      tensors_(collect_tensors(module)) {
  for (NamedParameter& parameter : tensors_.trained)
    parameter.sparse = false;  // programs may look at all of it
  require_dtype(tensors_, options.precision);
  collect_buffers(module, buffers_);
  if (tensors_.trained.empty()) {
    std::vector<Tensor> constant;
    for (const auto& [name, tensor] : tensors_.constant) constant.push_back(tensor);
    broadcast(group, constant);
    return;
  }
  arena_.emplace(tensors_.trained, options.precision, plain_memory(), group.allocator());
  engine_ = std::make_unique<DataParallel>(*arena_, group, options.bucket_bytes);
  if (options.precision == Precision::bf16) {
    at::NoGradGuard no_grad;
    for (auto& [name, tensor] : tensors_.constant) {
      if (tensor.is_floating_point()) tensor.set_data(tensor.to(at::kBFloat16));
    }
  }
  engine_->synchronise_start(tensors_.constant);
  used_.resize(arena_->parameters().size(), 0);
  buffer_versions_ = versions(buffers_);
}

bool Model::takes_part(const Tensor& loss, std::vector<Tensor>& others) {
  if (!engine_) return false;
  uses_ = engine_->count_uses(loss, &others);
  if (std::ranges::none_of(uses_, [](int uses) { return uses > 0; })) return false;
  if (window_.open && fingerprint() != window_.fingerprint) {
    throw Error(
        "backward: the parameters of model {} were changed since its last backward under no_backward_sync, so that the ranks may differ now; the last backward before a step must be outside of it, and zero_grad() of Lite's optimizer comes before any other change",
        number_);
  }
  const size_t dropped = arena_->rebind_dropped_gradients();
  if (dropped == used_.size()) {  // somebody's zero_grad()
    window_ = {};
    reduced_ = false;
    held_ = Tensor();
    std::ranges::fill(used_, 0);
  }
  for (size_t i = 0; i < uses_.size(); ++i) used_[i] |= uses_[i] > 0;
  return true;
}

void Model::end_backward(bool synchronises) {
  engine_->end_backward(synchronises);
  if (!synchronises) window_.fingerprint = fingerprint();
}

// Of two elements of each parameter, on CPU: a step changes some of them. Torch's optimizers leave no other trace.
uint64_t Model::fingerprint() const {
  if (!arena_->buffers().master.device().is_cpu()) return 0;
  std::vector<uint16_t> elements;
  for (const auto& parameter : arena_->parameters()) {
    const auto bytes = static_cast<size_t>(parameter.info.tensor.nbytes());
    if (bytes == 0) continue;
    const size_t middle = bytes / 4 * 2;
    const auto* data = static_cast<const char*>(parameter.data);
    elements.resize(elements.size() + 2);
    std::memcpy(&elements.end()[-2], data, sizeof(uint16_t));
    std::memcpy(&elements.end()[-1], data + std::min(middle, bytes - 2), sizeof(uint16_t));
  }
  return hash64({reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(uint16_t)});
}

void Model::extend_window(std::optional<double> count) {
  if (window_.open && window_.count.has_value() != count.has_value()) {
    throw Error(
        "backward: a mean (Tensor) and a sum with its count (Loss) cannot be accumulated into one step's gradients; give backward the same kind until the step");
  }
  if (reduced_) {
    held_ = arena_->buffers().grad.clone();
    arena_->buffers().grad.zero_();
    reduced_ = false;
  }
  window_.open = true;
  if (count) window_.count = window_.count.value_or(0) + *count;
}

void Model::finish(double count, bool has_unused, double loss) {
  last_loss_ = loss;
  engine_->wait();
  Tensor grad = arena_->buffers().grad;
  if (window_.count) {
    if (count <= 0) {
      throw DataError("backward: the losses of all ranks count {} samples: there is nothing to divide by",
                      count);
    }
    if (count != 1) grad.div_(count);
  }
  if (held_.defined()) grad.add_(held_);
  held_ = Tensor();
  window_ = {};
  reduced_ = true;
  if (has_unused && options_.skips_unused) drop_unused();
}

// As on one rank, where torch leaves their gradients undefined and torch::optim passes them over.
void Model::drop_unused() {
  Tensor used = at::from_blob(used_.data(), {static_cast<int64_t>(used_.size())}, at::kByte).clone();
  if (group_.size() > 1) {
    used = used.to(arena_->buffers().grad.device());
    group_.all_reduce(used, ReduceOp::max).wait();
    used = used.to(at::kCPU);
  }
  for (size_t i = 0; i < used_.size(); ++i) {
    if (used.const_data_ptr<uint8_t>()[i] != 0) continue;
    Tensor parameter = arena_->parameters()[i].info.tensor;
    parameter.mutable_grad() = Tensor();
  }
}

bool Model::has_unused() const {
  return options_.skips_unused && std::ranges::any_of(used_, [](uint8_t used) { return used == 0; });
}

bool Model::buffers_changed() const { return versions(buffers_) != buffer_versions_; }

void Model::zero_grad() {
  arena_->rebind_dropped_gradients();
  arena_->buffers().grad.zero_();
  gradients_were_taken();
}

void Model::zero_grad(const std::set<size_t>& parameters) {
  arena_->rebind_dropped_gradients();
  for (const size_t index : parameters) {
    const auto& parameter = arena_->parameters()[index];
    arena_->buffers().grad.slice(0, parameter.begin, parameter.end).zero_();
    used_[index] = 0;
  }
}

void Model::gradients_were_taken() {
  window_ = {};
  reduced_ = false;
  held_ = Tensor();
  std::ranges::fill(used_, 0);
}

void Model::require_gradients(const std::string& what) const {
  if (window_.open) {
    throw Error(
        "{}: the gradients of model {} are this rank's own: the last backward before a step must be outside of no_backward_sync",
        what, number_);
  }
  if (!reduced_) throw Error("{}: model {} has no gradients; call backward of Lite first", what, number_);
}

void Model::synchronise_buffers() {
  broadcast(group_, buffers_);
  buffer_versions_ = versions(buffers_);
}

void Model::compare_replicas() const {
  if (engine_) engine_->compare_replicas();
}

std::string Model::describe(const std::string& compute) const {
  const char* master = master_dtype(options_.precision) == at::kDouble ? "fp64" : "fp32";
  const size_t frozen = tensors_.constant.size() - buffers_.size();
  std::string text =
      fmt::format("model {}    {} trained parameters in {} tensors; {} frozen, {} buffers", number_,
                  arena_ ? arena_->trained_elements() : 0, tensors_.trained.size(), frozen, buffers_.size());
  if (!arena_) return text;
  const auto bytes = static_cast<double>(arena_->buffers().master.nbytes());
  text += fmt::format(
      "\ntypes      compute {} | parameters {} | gradient {} | reduce {}, in {} bucket{}\nmemory     {} a rank for parameters and as much for gradients; the optimizer's state comes on top",
      compute, master, master, master, engine_->buckets(), engine_->buckets() == 1 ? "" : "s",
      human_bytes(bytes));
  return text;
}

}  // namespace stretto::lite
