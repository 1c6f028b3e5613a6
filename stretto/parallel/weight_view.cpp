#include "stretto/parallel/weight_view.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "stretto/base/hash.h"
#include "stretto/parallel/divided_weights.h"
#include "stretto/parallel/engine_parts.h"
#include "stretto/parallel/gathered_weights.h"
#include "stretto/parallel/replicas.h"
#include "stretto/tensor/finite.h"

namespace stretto::parallel {

AveragedWeights::AveragedWeights(EngineParts* engine) : engine_(engine) {
  if (engine_ != nullptr) engine_->swap_average();
}

AveragedWeights::~AveragedWeights() noexcept(false) {
  if (engine_ != nullptr && std::uncaught_exceptions() == exceptions_) engine_->swap_average();
}

AveragedWeights WeightView::averaged(bool use) {
  return AveragedWeights(use && engine_->average ? engine_ : nullptr);
}

void WeightView::catch_up() { engine_->catch_up(); }

NamedTensors WeightView::all() {
  catch_up();
  engine_->synchronise_buffers();
  Tensor master = engine_->arena.buffers().master;
  if (engine_->arena.master_is_sharded()) {
    master = at::empty({engine_->arena.elements()}, master.options());
    master.slice(0, engine_->arena.owned().begin, engine_->arena.owned().end)
        .copy_(engine_->arena.buffers().master);
    engine_->gather_shards(master);
  }
  return named(master);
}

void WeightView::at_first(const std::function<void(const ListedSource&)>& use) {
  catch_up();
  engine_->synchronise_buffers();
  const bool first = engine_->ranks.all.rank() == 0;
  if (engine_->facts.is_divided) {
    const bool shards = engine_->arena.shards().size() > 1;
    if (!shards && !first) return;
    Group& holders = shards ? engine_->ranks.stage : engine_->ranks.parts;
    if (holders.rank() > 0) return send_pieces(engine_->arena, holders);
    return use(DividedWeights(engine_->arena, holders, others()));
  }
  if (!engine_->arena.master_is_sharded()) {
    if (first) use(MemorySource(named(engine_->arena.buffers().master)));
    return;
  }
  if (engine_->ranks.replicas != nullptr && engine_->ranks.replicas->rank() != 0) return;
  if (first) {
    use(GatheredWeights(engine_->arena, engine_->ranks.shard, others()));
  } else {
    send_weights(engine_->arena, engine_->ranks.shard);
  }
}

// Returns frozen parameters and buffers.
NamedTensors WeightView::others() const {
  NamedTensors tensors;
  for (const NamedTensorList* list : {&engine_->facts.tensors.frozen, &engine_->facts.tensors.buffers}) {
    for (const auto& [name, tensor] : *list) tensors[name] = tensor.detach();
  }
  return tensors;
}

NamedTensors WeightView::named(const Tensor& master) const {
  NamedTensors weights = others();
  for (const auto& parameter : engine_->arena.parameters())
    weights[parameter.info.name] = engine_->whole(parameter, master.slice(0, parameter.begin, parameter.end));
  return weights;
}

// Each rank checks the values that it owns, in the order of names, as in a model file.
std::string WeightView::first_nonfinite() {
  catch_up();
  std::vector<int64_t> by_name(engine_->arena.parameters().size());
  std::iota(by_name.begin(), by_name.end(), int64_t{0});
  std::ranges::sort(by_name, {}, [&](int64_t parameter) { return engine_->parameter_name(parameter); });
  int64_t first = -1;
  for (size_t place = 0; place < by_name.size() && first < 0; ++place) {
    const auto& parameter = engine_->arena.parameters()[static_cast<size_t>(by_name[place])];
    for (const Piece& piece : engine_->arena.master_entry(parameter, parameter.info.name).pieces) {
      if (!is_finite(piece.data)) first = static_cast<int64_t>(place);
    }
  }
  first = engine_->least_of_ranks(first, engine_->arena.shards().size() > 1);
  return first < 0 ? "" : engine_->parameter_name(by_name[static_cast<size_t>(first)]);
}

// Hashes two elements of each parameter.
uint64_t WeightView::fingerprint() const {
  if (!engine_->arena.buffers().master.device().is_cpu()) return 0;
  if (engine_->arena.parameters_are_sharded()) {  // their values have no address between passes
    const Tensor& owned = engine_->arena.parameter_values();
    return checksum(owned.slice(0, 0, owned.numel(), std::max<int64_t>(1, owned.numel() / 4096)));
  }
  std::vector<uint16_t> elements;
  for (const auto& parameter : engine_->arena.parameters()) {
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

}  // namespace stretto::parallel
