#include <algorithm>
#include <array>
#include <cmath>

#include "stretto/kernels/flush_denormals.h"
#include "stretto/kernels/sum_of_squares.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

class Lamb : public Optimizer, public StepsParts {
 public:
  explicit Lamb(const LambOptions& options) : Optimizer({options.lr, options.betas[0]}), options_(options) {}
  std::string name() const override { return "Lamb"; }
  Placement placement() const override { return Placement::whole_tensor; }
  int64_t state_bytes() const override {
    int64_t bytes = 0;
    for (const auto& [exp_avg, exp_avg_sq] : states_)
      bytes += static_cast<int64_t>(exp_avg.nbytes() + exp_avg_sq.nbytes());
    return bytes;
  }

 private:
  struct TensorState {
    Tensor exp_avg, exp_avg_sq;
  };

  // The factors of a step that are equal for all elements of a tensor.
  struct Factors {
    double beta1, weight_decay, grad_scale;
    double of_average, of_root;  // of exp_avg, and of the root of exp_avg_sq
  };

  void make_state(const Allocator& allocator) override {
    const Tensor& master = buffers().master;
    for (const ParameterPiece& piece : pieces()) {
      const auto zeros = [&] {
        return allocator(piece.end - piece.begin, master.scalar_type(), master.device());
      };
      states_.push_back({zeros(), zeros()});
    }
  }

  void update(const StepRates& rates, double grad_scale, int64_t step, const TouchedRows&) override {
    const at::NoGradGuard no_grad;
    const kernels::FlushDenormals flush;
    const double beta1 = rates.momentum.value_or(options_.betas[0]);
    const double average = 1 / (1 - std::pow(beta1, step)),
                 root = 1 / std::sqrt(1 - std::pow(options_.betas[1], step));
    const bool corrects_moments = options_.bias_correction == "moments",
               corrects_step = options_.bias_correction == "step";
    const double lr = rates.lr * (corrects_step ? average / root : 1);
    for (size_t i = 0; i < pieces().size(); ++i) {
      const ParameterPiece& piece = pieces()[i];
      if (piece.begin == piece.end) continue;
      step_tensor(piece, slice(buffers(), piece.begin, piece.end), states_[i], lr * piece.lr_factor,
                  {.beta1 = beta1,
                   .weight_decay = piece.weight_decay ? options_.weight_decay : 0,
                   .grad_scale = grad_scale,
                   .of_average = corrects_moments ? average : 1,
                   .of_root = corrects_moments ? root : 1});
    }
  }

  // Two passes over parts that fit into the cache. The first replaces the gradients by the directions of the
  // step, whose norm the second needs.
  void step_tensor(const ParameterPiece& piece, const Buffers& tensor, const TensorState& state, double lr,
                   const Factors& factors) const {
    std::array<double, 2> squares = {0, 0};  // sums of those of the weights and of the directions
    each_part(tensor, [&](const Buffers& part, int64_t begin, int64_t end) {
      to_direction(part, {state.exp_avg.slice(0, begin, end), state.exp_avg_sq.slice(0, begin, end)},
                   factors);
      squares[0] += kernels::sum_of_squares(part.master);
      squares[1] += kernels::sum_of_squares(part.grad);
    });
    sum_over_parts(piece, squares);
    const double rate = -lr * trust_ratio(std::sqrt(squares[0]), std::sqrt(squares[1]));
    each_part(tensor, [&](const Buffers& part, int64_t, int64_t) {
      Tensor(part.master).add_(part.grad, rate);
      Tensor(part.grad).zero_();
      if (part.compute.defined()) Tensor(part.compute).copy_(part.master);
    });
  }

  template <class Use>
  static void each_part(const Buffers& tensor, const Use& use) {
    constexpr int64_t cached_elements = 32'768;
    const int64_t elements = tensor.master.numel();
    const int64_t length = tensor.master.device().is_cpu() ? cached_elements : elements;
    for (int64_t begin = 0; begin < elements; begin += length) {
      const int64_t end = std::min(elements, begin + length);
      use(slice(tensor, begin, end), begin, end);
    }
  }

  void to_direction(const Buffers& part, const TensorState& state, const Factors& factors) const {
    Tensor grad = part.grad;
    grad.mul_(factors.grad_scale);
    state.exp_avg.lerp_(grad, 1 - factors.beta1);
    state.exp_avg_sq.mul_(options_.betas[1]).addcmul_(grad, grad, 1 - options_.betas[1]);
    at::sqrt_out(grad, state.exp_avg_sq);
    grad.mul_(factors.of_root).add_(options_.eps);
    at::div_out(grad, state.exp_avg, grad);
    grad.mul_(factors.of_average);
    if (factors.weight_decay != 0) grad.add_(part.master, factors.weight_decay);
  }

  double trust_ratio(double weights, double direction) const {
    if (weights == 0 || direction == 0) return 1;
    return std::clamp(weights / direction, options_.min_coeff, options_.max_coeff);
  }

  void add_piece_state(State& state, const std::string& prefix, const ParameterPiece& piece) const override {
    const TensorState& own = states_[static_cast<size_t>(&piece - pieces().data())];
    state.tensors.push_back(piece_entry(prefix + ".exp_avg." + piece.name, piece, own.exp_avg));
    state.tensors.push_back(piece_entry(prefix + ".exp_avg_sq." + piece.name, piece, own.exp_avg_sq));
  }

  LambOptions options_;
  std::vector<TensorState> states_;
};

}  // namespace

std::unique_ptr<Optimizer> lamb(const LambOptions& options) {
  settings::check_settings(options, "Lamb");
  return std::make_unique<Lamb>(options);
}

}  // namespace stretto::optim
