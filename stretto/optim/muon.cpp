#include <algorithm>
#include <cmath>

#include "stretto/kernels/adamw.h"
#include "stretto/kernels/flush_denormals.h"
#include "stretto/kernels/matmul/matmul.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Muon : public Optimizer, public StepsParts {
 public:
  explicit Muon(const MuonOptions& options)
      : Optimizer({options.lr, options.momentum}),
        options_(options),
        adamw_lr_factor_(options.adamw_lr.value_or(options.lr) / options.lr) {}
  std::string name() const override { return "Muon"; }
  Placement placement() const override { return Placement::whole_tensor; }
  int64_t state_bytes() const override {
    int64_t bytes = 0;
    for (const auto& tensors : states_)
      for (const Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
    return bytes;
  }

 private:
  static std::vector<const char*> state_names(const ParameterPiece& piece) {
    if (piece.is_hidden_matrix) return {"momentum_buffer"};
    return {"exp_avg", "exp_avg_sq"};
  }

  void make_state(const Allocator& allocator) override {
    const Tensor& master = buffers().master;
    for (const ParameterPiece& piece : pieces()) {
      auto& tensors = states_.emplace_back();
      for (size_t i = 0; i < state_names(piece).size(); ++i)
        tensors.push_back(allocator(piece.end - piece.begin, master.scalar_type(), master.device()));
    }
  }

  void update(const StepRates& rates, double grad_scale, int64_t step, const TouchedRows&) override {
    const at::NoGradGuard no_grad;
    const kernels::FlushDenormals flush;
    for (size_t i = 0; i < pieces().size(); ++i) {
      const ParameterPiece& piece = pieces()[i];
      if (piece.begin == piece.end) continue;
      const Buffers part = slice(buffers(), piece.begin, piece.end);
      const double lr = rates.lr * piece.lr_factor;
      const double weight_decay = piece.weight_decay ? options_.weight_decay : 0;
      if (piece.is_hidden_matrix) {
        step_matrix(piece, part, states_[i][0], lr, weight_decay, rates.momentum.value_or(options_.momentum),
                    grad_scale);
        continue;
      }
      const auto& [beta1, beta2] = options_.adamw_betas;
      kernels::adamw(
          {part.master, part.grad, part.compute}, states_[i][0], states_[i][1],
          {lr * adamw_lr_factor_, beta1, beta2, options_.adamw_eps, weight_decay, grad_scale, step});
    }
  }

  // The ranks among which a matrix is divided join it, and each has all of its direction.
  void step_matrix(const ParameterPiece& piece, const Buffers& part, const Tensor& average, double lr,
                   double weight_decay, double momentum, double grad_scale) const {
    const std::vector<int64_t> shape = piece.layout.local();
    Tensor master = part.master.view(shape), buffer = average.view(shape);
    const Tensor grad = Tensor(part.grad).mul_(grad_scale).view(shape);
    buffer.lerp_(grad, 1 - momentum);
    const bool bf16 = part.compute.defined() && part.compute.scalar_type() == at::kBFloat16;
    const Tensor sum = options_.nesterov ? grad.lerp(buffer, momentum) : buffer;
    const Tensor direction = orthogonalized(piece.is_cut() ? piece.parts->whole(piece.layout, sum) : sum,
                                            (bf16 ? part.compute : part.master).scalar_type());
    if (weight_decay != 0) master.mul_(1 - lr * weight_decay);
    master.add_(local_part(piece.layout, direction), -lr * lr_factor_of(piece.layout.global));
    Tensor(part.grad).zero_();
    if (part.compute.defined()) Tensor(part.compute).copy_(part.master);
  }

  double lr_factor_of(const std::vector<int64_t>& shape) const {
    const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
    return options_.adjust_lr_fn == "original" ? std::sqrt(std::max(1.0, rows / columns))
                                               : 0.2 * std::sqrt(std::max(rows, columns));
  }

  // A Newton-Schulz iteration that brings the singular values of `matrix` close to 1. `type`: of the operands
  // of its matmuls.
  Tensor orthogonalized(const Tensor& matrix, at::ScalarType type) const {
    const bool is_tall = matrix.size(0) > matrix.size(1);
    const auto& c = options_.ns_coefficients;
    Tensor x = is_tall ? matrix.t() : matrix;
    x = x / x.norm().clamp_min(options_.eps);
    for (int64_t i = 0; i < options_.ns_steps; ++i) {
      const Tensor operand = x.to(type);
      const Tensor gram = add_product(at::zeros({x.size(0), x.size(0)}, x.options()), operand, operand.t());
      const Tensor rounded = gram.to(type);
      const Tensor square = add_product(at::zeros_like(gram), rounded, rounded);
      const Tensor polynomial = gram.mul(c[1]).add_(square, c[2]);
      x = add_product(x * c[0], polynomial.to(type), operand);
    }
    return is_tall ? x.t() : x;
  }

  // out += a b
  static Tensor add_product(Tensor out, const Tensor& a, const Tensor& b) {
    kernels::multiply(kernels::MatmulRole::weight_gradient, out, a, b, /*accumulate=*/true);
    return out;
  }

  void add_piece_state(State& state, const std::string& prefix, const ParameterPiece& piece) const override {
    const auto& tensors = states_[static_cast<size_t>(&piece - pieces().data())];
    const auto names = state_names(piece);
    for (size_t i = 0; i < names.size(); ++i)
      state.tensors.push_back(
          piece_entry(fmt::format("{}.{}.{}", prefix, names[i], piece.name), piece, tensors[i]));
  }

  MuonOptions options_;
  double adamw_lr_factor_;                   // of the schedule's rate, for the parameters that AdamW updates
  std::vector<std::vector<Tensor>> states_;  // of each piece, in the order of state_names()
};

}  // namespace

std::unique_ptr<Optimizer> muon(const MuonOptions& options) {
  settings::check_settings(options, "Muon");
  return std::make_unique<Muon>(options);
}

}  // namespace stretto::optim
