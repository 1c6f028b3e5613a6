#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "stretto/kernels/cpu/factored_loops.h"
#include "stretto/kernels/flush_denormals.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Adafactor : public Optimizer, public StepsParts {
 public:
  explicit Adafactor(const AdafactorOptions& options) : Optimizer({options.lr}), options_(options) {}
  std::string name() const override { return "Adafactor"; }
  Placement placement() const override { return Placement::whole_tensor; }
  int64_t state_bytes() const override {
    int64_t bytes = 0;
    for (const TensorState& state : states_) {
      for (const Tensor& part : {state.row_var, state.col_var, state.variance})
        if (part.defined()) bytes += static_cast<int64_t>(part.nbytes());
    }
    return bytes;
  }

 private:
  struct TensorState {
    Tensor row_var, col_var;  // averages over the last dimension, and over the second last
    Tensor variance;          // instead of both
  };

  static TensorLayout row_layout(const ParameterPiece& piece) { return piece.layout.collapsed(-1); }
  static TensorLayout column_layout(const ParameterPiece& piece) { return piece.layout.collapsed(-2); }

  void make_state(const Allocator& allocator) override {
    const auto zeros = [&](const std::vector<int64_t>& shape) {
      return allocator(c10::multiply_integers(shape), buffers().master.scalar_type(),
                       buffers().master.device())
          .view(shape);
    };
    for (const ParameterPiece& piece : pieces()) {
      if (piece.layout.global.size() < 2 || piece.begin == piece.end) {
        states_.push_back({{}, {}, zeros({piece.end - piece.begin})});
        continue;
      }
      states_.push_back({zeros(row_layout(piece).local()), zeros(column_layout(piece).local()), {}});
    }
  }

  void update(const StepRates& rates, double grad_scale, int64_t step, const TouchedRows&) override {
    const at::NoGradGuard no_grad;
    const kernels::FlushDenormals flush;
    for (size_t i = 0; i < pieces().size(); ++i) {
      const ParameterPiece& piece = pieces()[i];
      if (piece.begin == piece.end) continue;
      const Buffers part = slice(buffers(), piece.begin, piece.end);
      if (step_matrices(piece, states_[i], part, rates.lr * piece.lr_factor, grad_scale,
                        static_cast<double>(step))) {
        if (part.compute.defined()) Tensor(part.compute).copy_(part.master);
        continue;
      }
      const std::vector<int64_t> shape = piece.layout.local();
      step_tensor(piece, states_[i], part.master.view(shape), part.grad.mul_(grad_scale).view(shape),
                  rates.lr * piece.lr_factor, static_cast<double>(step));
      part.grad.zero_();
      if (part.compute.defined()) Tensor(part.compute).copy_(part.master);
    }
  }

  // Updates a two-dimensional tensor on CPU in three passes over memory. Returns false and changes nothing
  // for other tensors.
  bool step_matrices(const ParameterPiece& piece, const TensorState& state, const Buffers& part, double lr,
                     double grad_scale, double step) const {
    if (piece.layout.global.size() != 2 || !part.master.device().is_cpu()) return false;
    part.master.scalar_type() == at::kDouble ? step_matrix<double>(piece, state, part, lr, grad_scale, step)
                                             : step_matrix<float>(piece, state, part, lr, grad_scale, step);
    return true;
  }

  template <class R>
  void step_matrix(const ParameterPiece& piece, const TensorState& state, const Buffers& part, double lr,
                   double grad_scale, double step) const {
    const std::vector<int64_t> shape = piece.layout.local();
    const int64_t rows = shape[0], columns = shape[1];
    const auto all_rows = static_cast<double>(piece.layout.global[0]),
               all_columns = static_cast<double>(piece.layout.global[1]);
    const kernels::FactoredMatrix<R> matrix = {part.master.data_ptr<R>(), part.grad.data_ptr<R>(),
                                               static_cast<R>(grad_scale), rows, columns};
    const auto options = part.master.options();
    const Tensor row_sums = at::empty({rows, 1}, options), scratch = at::empty({columns}, options);
    const Tensor column_sums = at::zeros({1, columns}, options.dtype(at::kDouble));
    std::array<double, 1> squares = {kernels::factored_squares_loop(
        matrix, row_sums.data_ptr<R>(), column_sums.data_ptr<double>(), scratch.data_ptr<R>())};
    sum_over_parts(piece, squares);
    sum_over_parts_along(1, piece, row_sums);
    sum_over_parts_along(0, piece, column_sums);
    const double weight = std::pow(step, options_.beta2_decay), eps = eps_of(part.master);
    Tensor row_var = state.row_var, col_var = state.col_var;
    row_var.lerp_(row_sums.div_(all_columns), weight);
    col_var.lerp_(column_sums.div_(all_rows).to(options), weight);
    const Tensor row = row_var / mean_of_rows(piece, row_var).clamp_min_(eps);
    const R *of_row = row.const_data_ptr<R>(), *of_column = col_var.const_data_ptr<R>();
    const auto least = static_cast<R>(eps * eps);
    const double size = all_rows * all_columns;
    std::array<double, 1> update = {kernels::factored_norm_loop(matrix, of_row, of_column, least)};
    sum_over_parts(piece, update);
    const double norm = std::sqrt(update[0] / size);
    const bool decays = piece.weight_decay && options_.weight_decay != 0;
    kernels::factored_step_loop(
        matrix, of_row, of_column, least, static_cast<R>(decays ? 1 - lr * options_.weight_decay : 1),
        static_cast<R>(alpha(std::sqrt(squares[0] / size), lr, step) / std::max(1.0, norm / options_.d)));
  }

  // The mean over the rows of the tensor, [.., 1, 1].
  static Tensor mean_of_rows(const ParameterPiece& piece, const Tensor& row_var) {
    if (!piece.is_cut_along(-2)) return row_var.mean(-2, true);
    const Tensor sum = row_var.sum(-2, true);
    sum_over_parts_along(-2, piece, sum);
    return sum / static_cast<double>(piece.layout.global.end()[-2]);
  }

  // The norm of the whole tensor, of which this rank has `local`.
  static double norm_of(const ParameterPiece& piece, const Tensor& local) {
    const auto norm = local.norm().item<double>();
    if (!piece.is_cut()) return norm;
    std::array<double, 1> square = {norm * norm};
    sum_over_parts(piece, square);
    return std::sqrt(square[0]);
  }

  double alpha(double rms, double lr, double step) const {
    return std::max(options_.eps[1], rms) * std::min(lr, 1 / std::sqrt(step));
  }

  double eps_of(const Tensor& master) const {
    if (options_.eps[0] > 0) return options_.eps[0];
    return master.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                               : static_cast<double>(std::numeric_limits<float>::epsilon());
  }

  void step_tensor(const ParameterPiece& piece, const TensorState& state, const Tensor& master,
                   const Tensor& grad, double lr, double step) const {
    const double root_of_size = std::sqrt(static_cast<double>(count_elements(piece.layout.global)));
    const double rms = norm_of(piece, master) / root_of_size;
    if (piece.weight_decay && options_.weight_decay != 0) master.mul_(1 - lr * options_.weight_decay);
    const double eps = eps_of(master);
    const Tensor update = variance(piece, state, grad, std::pow(step, options_.beta2_decay), eps)
                              .clamp_min_(eps * eps)
                              .rsqrt_()
                              .mul_(grad);
    const double limit = std::max(1.0, norm_of(piece, update) / (root_of_size * options_.d));
    master.add_(update, -alpha(rms, lr, step) / limit);
  }

  // The estimated square of each gradient, as a new tensor. `weight`: of the new gradient in the averages.
  static Tensor variance(const ParameterPiece& piece, const TensorState& state, const Tensor& grad,
                         double weight, double eps) {
    if (state.variance.defined()) {
      Tensor variance = state.variance.view(grad.sizes());
      return variance.lerp_(grad * grad, weight).clone();
    }
    const auto mean_square = [&](int axis) {
      const Tensor squares = at::norm(grad, 2, {axis}, true).square_();
      sum_over_parts_along(axis, piece, squares);
      return squares.div_(static_cast<double>(piece.layout.global.end()[axis]));
    };
    Tensor row_var = state.row_var, col_var = state.col_var;
    row_var.lerp_(mean_square(-1), weight);
    col_var.lerp_(mean_square(-2), weight);
    return at::matmul(row_var, col_var).div_(mean_of_rows(piece, row_var).clamp_min_(eps));
  }

  void add_piece_state(State& state, const std::string& prefix, const ParameterPiece& piece) const override {
    const TensorState& own = states_[static_cast<size_t>(&piece - pieces().data())];
    const auto add = [&](const char* key, const Tensor& tensor, const TensorLayout& layout) {
      state.tensors.push_back(part_entry(fmt::format("{}.{}.{}", prefix, key, piece.name), layout,
                                         /*first=*/0, tensor.view({-1}),
                                         layout.cuts.empty() ? piece.holders_of_whole : piece.holders));
    };
    if (own.variance.defined()) return add("variance", own.variance, piece.layout);
    add("row_var", own.row_var, row_layout(piece));
    add("col_var", own.col_var, column_layout(piece));
  }

  AdafactorOptions options_;
  std::vector<TensorState> states_;  // of each piece
};

}  // namespace

std::unique_ptr<Optimizer> adafactor(const AdafactorOptions& options) {
  settings::check_settings(options, "Adafactor");
  return std::make_unique<Adafactor>(options);
}

}  // namespace stretto::optim
