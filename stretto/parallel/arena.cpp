#include "stretto/parallel/arena.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/parallel/copied_parts.h"
#include "stretto/tensor/block_cache.h"

namespace stretto::parallel {
namespace {

constexpr int64_t alignment = optim::most_padding + 1;  // elements: 64 bytes of fp32, a cache line

int64_t round_up(int64_t elements, int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

// Reads of `storage` fail with `message` until it is withdrawn, which libtorch before 2.13 cannot do: there
// the address is null and no more.
template <typename Storage>
void set_access_error(Storage& storage, std::optional<std::string> message) {
  if constexpr (requires { storage.clear_data_ptr_access_error_msg_(); }) {
    if (message) return storage.release_data_and_set_meta_custom_data_ptr_error_msg_(std::move(message));
    storage.clear_data_ptr_access_error_msg_();
  }
}

}  // namespace

void read_in_place(std::span<const HeldValues> held) {
  at::NoGradGuard no_grad;
  for (const auto& [parameter, elements, values] : held)
    values.copy_(parameter.tensor.detach().reshape({-1}).slice(0, elements.begin, elements.end));
}

int64_t Arena::padded(int64_t size) { return round_up(size, alignment); }

Arena::Arena(std::vector<NamedParameter> parameters, const ArenaOptions& options, const ArenaMemory& memory,
             const ReadParameters& read)
    : shared_parameters_(options.shared_parameters),
      gradients_are_sharded_(options.gradients == Held::sharded),
      parameters_are_sharded_(options.parameters == Held::sharded),
      copies_(options.copies),
      copies_of_whole_(options.copies_of_whole),
      copies_of_copied_(options.copies_of_copied) {
  if (options.optimizer != Held::sharded) {
    copies_.shard_holders = copies_.holders;
    copies_of_whole_.shard_holders = copies_of_whole_.holders;
    for (auto& [_, copies] : copies_of_copied_) copies.shard_holders = copies.holders;
  }
  if (parameters.empty())
    throw ConfigError(
        "the model has no trainable parameters: it has no parameters, or all of them are frozen");
  int64_t end = 0;
  for (NamedParameter& info : parameters) {
    const int64_t size = info.tensor.numel();
    trainable_elements_ += size;
    const size_t index = parameters_.size();
    if (units_.empty() || units_.back().name != info.unit)
      units_.push_back({info.unit, {end, end}, index, index, {}, {}});
    parameters_.push_back({std::move(info), units_.size() - 1, end, end + size, nullptr, nullptr});
    end += padded(parameters_.back().info.layout.slot());
    units_.back().elements.end = end;
    units_.back().end_parameter = index + 1;
  }
  if (options.optimizer == Held::sharded) {
    if (options.placement == optim::Placement::flat) end = round_up(end, alignment * options.shards);
    cut_shards(options, end);
    owned_ = shards_[static_cast<size_t>(options.shard)];
  } else {
    shards_ = {{0, end}};
    owned_ = shards_[0];
  }
  elements_ = units_.back().elements.end = end;
  gradient_range_ = gradients_are_sharded_ ? owned_ : Range{0, end};

  const at::Device device = parameters_[0].info.tensor.device();
  const at::ScalarType master = master_dtype(options.precision), compute = compute_dtype(options.precision);
  buffers_.grad = memory.gradients(gradient_range_.size(), master, device);
  const int64_t held = parameters_are_sharded_ ? owned_.size() : end;
  if (compute != master) buffers_.compute = memory.parameters(held, compute, device);
  buffers_.master =
      compute != master ? memory.own(owned_.size(), master, device) : memory.parameters(held, master, device);
  for (Unit& unit : units_) {
    if (parameters_are_sharded_) make_storage(unit);
  }
  for (const Parameter& parameter : parameters_) {
    // Rows are stepped separately unless the optimizer's part is a shard: shards are stepped as a whole.
    if (parameter.info.sparse && shards_.size() == 1)
      use_small_pages(gradients({parameter.begin, parameter.end}));
  }
  bind_parameters(read);
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    const Range& elements = units_[unit].elements;
    if ((elements & gradient_range_).size() == elements.size()) bind_gradients(unit, gradients(elements));
    if (!parameters_are_sharded_) continue;
    const bool is_owned = (elements & owned_).size() == elements.size();
    bind_values(unit, is_owned ? parameter_values().slice(0, elements.begin - owned_.begin,
                                                          elements.end - owned_.begin)
                               : Tensor());
  }
}

// Equal shards for a flat placement; else each boundary moves down to the beginning of a parameter.
void Arena::cut_shards(const ArenaOptions& options, int64_t end) {
  const auto boundary = [&](int64_t shard) {
    const int64_t ideal = end * shard / options.shards;
    if (options.placement == optim::Placement::flat || shard == options.shards) return ideal;
    const auto after = std::ranges::upper_bound(parameters_, ideal, {}, &Parameter::begin);
    return std::prev(after)->begin;
  };
  for (int shard = 0; shard < options.shards; ++shard)
    shards_.push_back({boundary(shard), boundary(shard + 1)});
}

// Parameters, and views of them that autograd has saved, refer to the storage; its memory changes.
void Arena::make_storage(Unit& unit) const {
  const Tensor& values = parameter_values();
  unit.values = c10::Storage(c10::Storage::use_byte_size_t{},
                             static_cast<size_t>(unit.elements.size()) * values.element_size(),
                             at::DataPtr(nullptr, values.device()), /*allocator=*/nullptr);
}

void Arena::bind_values(size_t unit, const Tensor& memory) {
  c10::StorageImpl& storage = *units_[unit].values.unsafeGetStorageImpl();
  if (memory.defined()) {
    const auto release = [](void* tensor) { delete static_cast<Tensor*>(tensor); };
    void* const data = memory.mutable_data_ptr();
    storage.set_data_ptr_noswap(at::DataPtr(data, new Tensor(memory), release, memory.device()));
    set_access_error(storage, std::nullopt);
    return;
  }
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, parameter_values().device()));
  set_access_error(
      storage,
      fmt::format(
          "the parameters of \"{}\" are sharded over the ranks: their values can be read only during forward and backward of that block",
          units_[unit].name));
}

// The earlier memory of the parameters is returned to the system meanwhile, so that two copies of a model
// never exist.
void Arena::bind_parameters(const ReadParameters& read) {
  for (size_t first = 0, end = 0; first < parameters_.size(); first = end) {
    std::vector<HeldValues> few;
    int64_t bytes = 0;
    for (; end < parameters_.size(); ++end) {
      // Not its local size: ranks with other parts read the same few.
      const auto size = parameters_[end].info.layout.slot() *
                        static_cast<int64_t>(parameters_[end].info.tensor.element_size());
      if (!few.empty() && bytes + size > read_at_once) break;
      bytes += size;
      few.push_back(held_values(parameters_[end]));
    }
    read(few);
    for (size_t i = 0; i < few.size(); ++i) bind(parameters_[first + i], few[i]);
    few.clear();
    if (bytes > read_at_once / 2) trim_tensor_memory();
  }
}

// The memory of the values is that of the master weights where these have the parameter's dtype.
HeldValues Arena::held_values(const Parameter& parameter) const {
  const NamedParameter& info = parameter.info;
  const bool of_shard = shared_parameters_ || parameters_are_sharded_;
  const Range whole = {parameter.begin, parameter.end}, held = of_shard ? owned_ & whole : whole;
  HeldValues result = {info, held.shifted(-parameter.begin), {}};
  const bool direct =
      buffers_.master.scalar_type() == info.tensor.scalar_type() && (of_shard || !master_is_sharded());
  const int64_t first = master_is_sharded() ? owned_.begin : 0;
  result.values = direct && held.size() > 0 ? buffers_.master.slice(0, held.begin - first, held.end - first)
                                            : at::empty({held.size()}, info.tensor.options());
  return result;
}

void Arena::bind(Parameter& parameter, const HeldValues& held) {
  at::NoGradGuard no_grad;
  Tensor tensor = parameter.info.tensor;
  const Range whole = {parameter.begin, parameter.end}, read = held.elements.shifted(parameter.begin);
  const auto store = [&](const Tensor& buffer, int64_t first, const Range& range) {
    if (range.size() == 0) return;
    const Tensor target = buffer.slice(0, range.begin - first, range.end - first);
    const Tensor values = held.values.slice(0, range.begin - read.begin, range.end - read.begin);
    if (target.const_data_ptr() != values.const_data_ptr()) target.copy_(values);
  };
  store(parameter_values(), parameters_are_sharded_ ? owned_.begin : 0, read);
  if (buffers_.compute.defined())
    store(buffers_.master, master_is_sharded() ? owned_.begin : 0, master_range() & whole);
  tensor.mutable_grad() = Tensor();
  if (parameters_are_sharded_) {
    const Unit& unit = units_[parameter.unit];
    tensor.set_data(at::empty({0}, parameter_values().options())
                        .set_(unit.values, parameter.begin - unit.elements.begin, tensor.sizes()));
    return;
  }
  tensor.set_data(parameter_values().slice(0, parameter.begin, parameter.end).view(tensor.sizes()));
  parameter.data = tensor.data_ptr();
}

Tensor Arena::gradients(const Range& range) const {
  return buffers_.grad.slice(0, range.begin - gradient_range_.begin, range.end - gradient_range_.begin);
}

void Arena::bind_gradients(size_t unit, const Tensor& memory) {
  at::NoGradGuard no_grad;
  units_[unit].gradients = memory;
  for (size_t i = units_[unit].first_parameter; i < units_[unit].end_parameter; ++i) {
    Parameter& parameter = parameters_[i];
    Tensor tensor = parameter.info.tensor, grad;
    if (memory.defined()) grad = grad_view(parameter);
    if (memory.defined() && tensor.grad().defined()) grad.add_(tensor.grad());
    tensor.mutable_grad() = grad;
    parameter.grad = grad.defined() ? grad.mutable_data_ptr() : nullptr;
  }
}

optim::Buffers Arena::owned_buffers() const {
  const auto owned = [&](const Tensor& buffer) {
    return buffer.defined() && buffer.numel() == elements() ? buffer.slice(0, owned_.begin, owned_.end)
                                                            : buffer;
  };
  return {owned(buffers_.master), gradients(owned_), owned(buffers_.compute)};
}

std::vector<optim::ParameterPiece> Arena::owned_pieces() const {
  std::vector<optim::ParameterPiece> pieces;
  for (const Parameter& parameter : parameters_) {
    const Range part = owned_ & Range{parameter.begin, parameter.end};
    if (part.size() == 0) continue;
    const NamedParameter& info = parameter.info;
    pieces.push_back({.name = info.name,
                      .layout = info.layout,
                      .first = part.begin - parameter.begin,
                      .begin = part.begin - owned_.begin,
                      .end = part.end - owned_.begin,
                      .weight_decay = info.weight_decay,
                      .lr_factor = info.lr_factor,
                      .row_width = info.steps_rows ? info.tensor.size(1) : 0,
                      .is_hidden_matrix = info.is_hidden_matrix,
                      .holders = copies_of(parameter).shard_holders,
                      .holders_of_whole = copies_of_whole_.shard_holders});
  }
  return pieces;
}

Entry Arena::master_entry(const Parameter& parameter, std::string name) const {
  const Range part = master_range() & Range{parameter.begin, parameter.end};
  const int64_t first = master_is_sharded() ? owned_.begin : 0;
  return part_entry(std::move(name), parameter.info.layout, part.begin - parameter.begin,
                    buffers_.master.slice(0, part.begin - first, part.end - first),
                    master_is_sharded() || shared_parameters_ ? copies_of(parameter).shard_holders
                                                              : copies_of(parameter).holders);
}

const ArenaOptions::Copies& Arena::copies_of(const Parameter& parameter) const {
  const TensorLayout& layout = parameter.info.layout;
  if (layout.cuts.empty()) return copies_of_whole_;
  const auto copied = copies_of_copied_.find(parallel::copies_of(layout));
  return copied == copies_of_copied_.end() ? copies_ : copied->second;
}

Range Arena::master_range() const {
  return master_is_sharded() || shared_parameters_ ? owned_ : Range{0, elements()};
}

void Arena::refresh_compute() {
  if (!buffers_.compute.defined()) return;
  const optim::Buffers owned = owned_buffers();
  owned.compute.copy_(owned.master);
}

Tensor Arena::grad_view(const Parameter& parameter) const {
  const Unit& unit = units_[parameter.unit];
  const int64_t first = unit.elements.begin;
  return unit.gradients.slice(0, parameter.begin - first, parameter.end - first)
      .view(parameter.info.tensor.sizes())
      .detach();
}

void Arena::verify() const {
  for (const Parameter& parameter : parameters_) {
    verify_data(parameter);
    verify_grad(parameter);
  }
}

size_t Arena::rebind_dropped_gradients() {
  size_t bound = 0, dropped = 0;
  for (const Parameter& parameter : parameters_) {
    verify_data(parameter);
    Tensor tensor = parameter.info.tensor;
    bound += parameter.grad != nullptr;
    if (tensor.grad().defined() || parameter.grad == nullptr) {
      verify_grad(parameter);
      continue;
    }
    ++dropped;
    const Tensor grad = grad_view(parameter);
    grad.zero_();
    tensor.mutable_grad() = grad;
  }
  return dropped > 0 && dropped == bound ? parameters_.size() : dropped;
}

void Arena::verify_data(const Parameter& parameter) const {
  const Tensor& tensor = parameter.info.tensor;
  if (parameters_are_sharded_ ? tensor.storage().is_alias_of(units_[parameter.unit].values)
                              : tensor.const_data_ptr() == parameter.data)
    return;
  throw Error(
      "parameter {} was replaced after setup (by Module::to, Module::load or an assignment); change the model before setup, or write into the parameter in place",
      parameter.info.name);
}

void Arena::verify_grad(const Parameter& parameter) const {
  const Tensor& grad = parameter.info.tensor.grad();
  if (grad.defined() ? grad.const_data_ptr() == parameter.grad : parameter.grad == nullptr) return;
  throw Error(
      "the gradient of {} was replaced or dropped; remove zero_grad(), or pass it set_to_none = false, and call backward without create_graph",
      parameter.info.name);
}

}  // namespace stretto::parallel
