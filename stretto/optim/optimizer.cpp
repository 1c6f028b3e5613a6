#include "stretto/optim/optimizer.h"

#include <functional>
#include <numeric>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/optim/tensor_parts.h"

namespace stretto::optim {
namespace {

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Whether the piece is as large as `placement` requires.
bool is_whole(const ParameterPiece& piece, Placement placement) {
  const std::vector<int64_t> shape = piece.layout.local();
  if (placement == Placement::flat) return true;
  if (shape.empty()) return true;
  const int64_t unit = placement == Placement::rows ? product(std::span(shape).subspan(1)) : product(shape);
  return unit == 0 || (piece.first % unit == 0 && (piece.end - piece.begin) % unit == 0);
}

}  // namespace

Buffers slice(const Buffers& buffers, int64_t begin, int64_t end) {
  const auto part = [&](const Tensor& buffer) {
    return buffer.defined() ? buffer.slice(0, begin, end) : buffer;
  };
  return {part(buffers.master), part(buffers.grad), part(buffers.compute)};
}

Entry piece_entry(std::string name, const ParameterPiece& piece, const Tensor& data) {
  return part_entry(std::move(name), piece.layout, piece.first, data, piece.holders);
}

Optimizer::Optimizer(const StepRates& base) : base_(base) {}
Optimizer::~Optimizer() = default;

void Optimizer::bind(const Buffers& buffers, std::vector<ParameterPiece> pieces, const Allocator& allocator,
                     const InFiles& in_files) {
  if (buffers_.master.defined()) throw Error("{}: bound twice", name());
  buffers_ = buffers;
  pieces_ = std::move(pieces);
  in_files_ = in_files;
  check_pieces();
  make_state(allocator);
}

void Optimizer::check_pieces() const {
  int64_t previous_end = 0;
  for (const ParameterPiece& piece : pieces_) {
    if (piece.begin < previous_end || piece.end < piece.begin || piece.end > buffers_.master.numel()) {
      throw Error("{}: elements [{}, {}) of {} overlap others or lie outside of the buffers of {} elements",
                  name(), piece.begin, piece.end, piece.name, buffers_.master.numel());
    }
    if (piece.is_cut() && !steps_parts(*this)) {
      throw Error("{}: {} of shape [{}] is cut over {}, but this optimizer needs it whole", name(),
                  piece.name, fmt::join(piece.layout.global, ", "), name_of(piece.layout.cuts[0].over));
    }
    if (!is_whole(piece, placement())) {
      throw Error("{}: {} of shape [{}] is split at element {}, but this optimizer needs {}", name(),
                  piece.name, fmt::join(piece.layout.global, ", "), piece.first,
                  placement() == Placement::rows ? "whole rows" : "whole tensors");
    }
    previous_end = piece.end;
  }
}

void Optimizer::step(const StepRates& rates, double grad_scale, const TouchedRows& touched) {
  require_bound();
  update(rates, grad_scale, steps_done_ + 1, touched);
  ++steps_done_;
}

void Optimizer::step(const StepRates& rates, const Evaluation& first, const Reevaluate& again) {
  require_bound();
  update(rates, first, again, steps_done_ + 1);
  ++steps_done_;
}

void Optimizer::require_bound() const {
  if (!buffers_.master.defined())
    throw Error("{}: step before bind; let the trainer or Lite set it up", name());
}

void Optimizer::add_state(State& state, const std::string& prefix) const {
  for (const ParameterPiece& piece : pieces_) add_piece_state(state, prefix, piece);
  state.scalars[prefix] = {{"type", name()}, {"steps", steps_done_}};
  add_scalars(state.scalars[prefix]);
  add_parts(state, prefix);
}

void Optimizer::resume(const State& state, const std::string& prefix) {
  const nlohmann::json& saved = state.scalar(prefix);
  if (saved.at("type") != name()) {
    throw ConfigError(
        "the checkpoint holds the state of {} under \"{}\"; this run uses {}; use the same, in the same order",
        saved.at("type").get<std::string>(), prefix, name());
  }
  saved.at("steps").get_to(steps_done_);
  read_scalars(saved);
  on_resume();
  resume_parts(state, prefix);
}

}  // namespace stretto::optim
