#include "stretto/parallel/divided_weights.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "stretto/base/log.h"
#include "stretto/checkpoint_format/region_copy.h"

namespace stretto::parallel {
namespace {

// A region of a parameter, by its index, that the first rank reads; nullopt: it has finished.
using Request = std::optional<std::pair<size_t, Region>>;

std::string encode(const Request& request) {
  if (!request) return "";
  const auto& [parameter, region] = *request;
  return nlohmann::json{parameter, region.offset, region.extent, region.flat_begin, region.flat_end}.dump();
}

Request decode(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(text);
  const auto sizes = [&](size_t i) { return json[i].get<std::vector<int64_t>>(); };
  return std::pair(json[0].get<size_t>(),
                   Region{sizes(1), sizes(2), json[3].get<int64_t>(), json[4].get<int64_t>()});
}

// The integer type with as many bytes: sums of values and zeros keep all bits, also those of -0.
at::ScalarType bits_of(at::ScalarType dtype) {
  switch (c10::elementSize(dtype)) {
    case 8:
      return at::kLong;
    case 4:
      return at::kInt;
    default:
      return at::kShort;
  }
}

Tensor join(const Arena& arena, Group& group, size_t parameter, const Region& region) {
  const Entry entry = arena.master_entry(arena.parameters()[parameter], "");
  return join_pieces(entry.holders.me == 0 ? entry.pieces : std::vector<Piece>(), region,
                     arena.buffers().master.options(), group);
}

}  // namespace

Tensor join_pieces(const std::vector<Piece>& pieces, const Region& wanted, const at::TensorOptions& options,
                   Group& group) {
  const Tensor joined = at::zeros({wanted.elements()}, options.device(at::kCPU));
  for (const Piece& piece : pieces) {
    const Tensor held = piece.data.detach().to(at::kCPU).contiguous();
    checkpoint_format::copy_common(piece.region, static_cast<const std::byte*>(held.const_data_ptr()), wanted,
                                   static_cast<std::byte*>(joined.mutable_data_ptr()),
                                   static_cast<int64_t>(joined.element_size()));
  }
  const Tensor sum = joined.to(options.device());
  group.all_reduce(sum.view(bits_of(sum.scalar_type()))).wait();
  return sum;
}

void PartsOverGroup::reduce(const Tensor& values, ReduceOp op) const {
  const Tensor own = values.to(group_.device()).contiguous();
  group_.all_reduce(own, op).wait();
  if (!own.is_same(values)) values.copy_(own);
}

double PartsOverGroup::largest(double value) const {
  const Tensor most = at::scalar_tensor(value, at::kDouble);
  reduce(most, ReduceOp::max);
  return most.item<double>();
}

Tensor PartsOverGroup::whole(const TensorLayout& layout, const Tensor& local) const {
  if (layout.cuts.empty()) return local.view(layout.global);
  const Entry entry = part_entry("", layout, 0, local.contiguous().view({-1}));
  const bool is_first_copy = group_.rank() % layout.cuts[0].copies == 0;
  return join_pieces(is_first_copy ? entry.pieces : std::vector<Piece>(), whole_region(layout.global),
                     local.options(), group_)
      .view(layout.global);
}

DividedWeights::DividedWeights(const Arena& arena, Group& group, NamedTensors others)
    : arena_(arena), group_(group), others_(std::move(others)), types_(others_.types()) {
  for (size_t i = 0; i < arena.parameters().size(); ++i) {
    const NamedParameter& info = arena.parameters()[i].info;
    parameters_[info.name] = i;
    types_[info.name] = {arena.buffers().master.scalar_type(), info.layout.global};
  }
}

DividedWeights::~DividedWeights() {
  try {
    group_.broadcast_bytes(encode(std::nullopt), 0);
  } catch (const std::exception& error) {  // the group has failed; its next call reports that
    log::warning("{}", error.what());
  }
}

Tensor DividedWeights::in_memory(const std::string& name) const {
  return others_.has(name) ? others_.in_memory(name) : Tensor();
}

void DividedWeights::read(const std::string& name, const Region& region, const Tensor& values) const {
  if (others_.has(name)) return others_.read(name, region, values);
  const size_t parameter = parameters_.at(name);
  group_.broadcast_bytes(encode(std::pair(parameter, region)), 0);
  values.copy_(join(arena_, group_, parameter, region).view(values.sizes()));
}

void send_pieces(const Arena& arena, Group& group) {
  while (const Request request = decode(group.broadcast_bytes("", 0)))
    join(arena, group, request->first, request->second);
}

}  // namespace stretto::parallel
