#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/range.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/tensor_parts.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

// An evaluation of the loss along a direction, at start + t x direction.
struct Point {
  double t;
  double loss;
  Tensor gradient;
  double slope;  // derivative of the loss along the direction
};

// The minimum within [least, most] of the cubic through both points with their slopes; the middle if it has
// no minimum there.
double lowest_between(const Point& a, const Point& b, double least, double most) {
  const auto& [left, right] = a.t <= b.t ? std::tie(a, b) : std::tie(b, a);
  const double mean = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.t - right.t);
  const double square = mean * mean - left.slope * right.slope;
  if (!(square >= 0)) return (least + most) / 2;
  const double root = std::sqrt(square);
  const double t =
      right.t - (right.t - left.t) * ((right.slope + root - mean) / (right.slope - left.slope + 2 * root));
  return std::min(std::max(t, least), most);
}

// Reductions of vectors of all parameters. Where tensors are divided among ranks, each rank has the elements
// of its parts, and those of whole tensors, which count once.
class WholeModel {
 public:
  WholeModel() = default;
  explicit WholeModel(std::span<const ParameterPiece> pieces) {
    for (const ParameterPiece& piece : pieces) {
      if (parts_ = piece.parts; parts_ == nullptr) return;
      if (!counts(piece)) continue;
      if (!counted_.empty() && piece.begin - counted_.back().end <= most_padding) {
        counted_.back().end = piece.end;
      } else {
        counted_.push_back({piece.begin, piece.end});
      }
    }
  }

  double largest(const Tensor& vector) const {
    const auto own = vector.abs().max().item<double>();
    return parts_ == nullptr ? own : parts_->largest(own);
  }
  double inner_product(const Tensor& a, const Tensor& b) const {
    return sum([&](const auto& part) { return at::dot(part(a), part(b)); });
  }
  double sum_of_magnitudes(const Tensor& vector) const {
    return sum([&](const auto& part) { return part(vector).abs().sum(); });
  }

 private:
  template <class Term>
  double sum(const Term& term) const {
    if (parts_ == nullptr) return term([](const Tensor& vector) { return vector; }).template item<double>();
    double sum = 0;
    for (const Range& range : counted_)
      sum +=
          term([&](const Tensor& v) { return v.slice(0, range.begin, range.end); }).template item<double>();
    const Tensor total = at::scalar_tensor(sum, at::kDouble);
    parts_->sum(total);
    return total.item<double>();
  }

  const TensorParts* parts_ = nullptr;
  std::vector<Range> counted_;  // the elements that this rank counts
};

class Lbfgs : public Optimizer, public StepsParts {
 public:
  explicit Lbfgs(const LbfgsOptions& options)
      : Optimizer({options.lr}),
        options_(options),
        max_eval_(options.max_eval.value_or(options.max_iter * 5 / 4)) {}
  std::string name() const override { return "LBFGS"; }
  Placement placement() const override { return Placement::whole_model; }
  bool reevaluates() const override { return true; }
  int64_t state_bytes() const override {
    int64_t bytes = 0;
    for (const auto& [key, tensor] : vectors()) bytes += static_cast<int64_t>(tensor.nbytes());
    return bytes;
  }

 private:
  void make_state(const Allocator& allocator) override {
    for (const ParameterPiece& piece : pieces()) {
      if (piece.lr_factor == 1) continue;
      throw ConfigError("LBFGS updates all parameters as one vector; found a separate learning rate for {}",
                        piece.name);
    }
    all_ = WholeModel(pieces());
    const Tensor& master = buffers().master;
    const auto zeros = [&](int64_t vectors) {
      return allocator(vectors * master.numel(), master.scalar_type(), master.device());
    };
    parameter_changes_ = zeros(options_.history_size).view({options_.history_size, -1});
    gradient_changes_ = zeros(options_.history_size).view({options_.history_size, -1});
    direction_ = zeros(1);
    last_gradient_ = zeros(1);
  }

  void update(const StepRates&, double, int64_t, const TouchedRows&) override {
    throw ConfigError(
        "LBFGS evaluates the loss several times per step: in Lite, pass step() a closure that computes it");
  }

  void update(const StepRates& rates, const Evaluation& first, const Reevaluate& again, int64_t) override {
    const at::NoGradGuard no_grad;
    evaluations_ = 1;
    Point point = {0, first.loss, take_gradient(first.grad_scale), 0};
    if (all_.largest(point.gradient) <= options_.tolerance_grad) return;
    for (int64_t iteration = 1; iteration <= options_.max_iter; ++iteration) {
      choose_direction(point.gradient);
      last_gradient_.copy_(point.gradient);
      const double loss_before = point.loss;
      length_ = rates.lr;
      if (!std::exchange(started_, true))
        length_ *= std::min(1.0, 1 / all_.sum_of_magnitudes(point.gradient));
      point.t = 0;
      point.slope = all_.inner_product(point.gradient, direction_);
      if (point.slope > -options_.tolerance_change) break;
      const bool last = iteration == options_.max_iter;
      if (options_.line_search_fn == "strong_wolfe") {
        const Tensor start = buffers().master.clone();
        point = search(start, point, max_eval_ - evaluations_, again);
        length_ = point.t;
        move(start, length_);
      } else if (last) {
        move(buffers().master, length_);  // this iteration needs no gradient
      } else {
        point = evaluate(buffers().master, length_, again);
      }
      if (last || evaluations_ >= max_eval_ || all_.largest(point.gradient) <= options_.tolerance_grad ||
          std::abs(length_) * all_.largest(direction_) <= options_.tolerance_change ||
          std::abs(point.loss - loss_before) < options_.tolerance_change)
        break;
    }
  }

  // Sets direction_ to the approximate inverse Hessian times the negative gradient.
  void choose_direction(const Tensor& gradient) {
    if (!started_) {
      direction_.copy_(gradient).neg_();
      return;
    }
    remember(gradient - last_gradient_, direction_ * length_);
    std::vector<double> factors(curvatures_.size());
    direction_.copy_(gradient).neg_();
    for (size_t i = factors.size(); i-- > 0;) {
      factors[i] = all_.inner_product(parameter_changes_[row(i)], direction_) * curvatures_[i];
      direction_.sub_(gradient_changes_[row(i)], factors[i]);
    }
    direction_.mul_(scale_);
    for (size_t i = 0; i < factors.size(); ++i) {
      const double correction = all_.inner_product(gradient_changes_[row(i)], direction_) * curvatures_[i];
      direction_.add_(parameter_changes_[row(i)], factors[i] - correction);
    }
  }

  // Stores a change of gradient and parameters, replacing the oldest, if the curvature along it is positive.
  void remember(const Tensor& gradient_change, const Tensor& parameter_change) {
    const double curvature = all_.inner_product(gradient_change, parameter_change);
    if (curvature <= 1e-10) return;
    if (std::ssize(curvatures_) == options_.history_size) {
      curvatures_.erase(curvatures_.begin());
      oldest_ = (oldest_ + 1) % options_.history_size;
    }
    curvatures_.push_back(1 / curvature);
    const int64_t newest = row(curvatures_.size() - 1);
    gradient_changes_[newest].copy_(gradient_change);
    parameter_changes_[newest].copy_(parameter_change);
    scale_ = curvature / all_.inner_product(gradient_change, gradient_change);
  }

  // The row of the i-th oldest change.
  int64_t row(size_t i) const { return (oldest_ + static_cast<int64_t>(i)) % options_.history_size; }

  // Returns a point that satisfies the strong Wolfe conditions, or the best point of at most `most` + 1
  // evaluations.
  Point search(const Tensor& start, const Point& origin, int64_t most, const Reevaluate& again) {
    const auto falls_too_little = [&](const Point& point) {
      return point.loss > origin.loss + 1e-4 * point.t * origin.slope;
    };
    const auto is_flat = [&](const Point& point) { return std::abs(point.slope) <= -0.9 * origin.slope; };
    Point previous = origin, point = evaluate(start, length_, again);
    int64_t tries = 0;
    std::array<Point, 2> bracket = {origin, origin};
    bool found = false;  // whether two points bracket a point that satisfies the conditions
    for (; tries < most; ++tries) {
      if (falls_too_little(point) || (tries > 1 && point.loss >= previous.loss) ||
          (!is_flat(point) && point.slope >= 0)) {
        bracket = {previous, point};
        found = true;
        break;
      }
      if (is_flat(point)) return point;
      const double next =
          lowest_between(previous, point, point.t + 0.01 * (point.t - previous.t), point.t * 10);
      previous = point;
      point = evaluate(start, next, again);
    }
    if (!found) bracket = {origin, point};
    return narrow(std::move(bracket), found ? most - tries : 0, start, again, falls_too_little, is_flat);
  }

  // The second phase of the search, between two points that bracket a point which satisfies the conditions.
  template <class FallsTooLittle, class IsFlat>
  Point narrow(std::array<Point, 2> bracket, int64_t most, const Tensor& start, const Reevaluate& again,
               const FallsTooLittle& falls_too_little, const IsFlat& is_flat) {
    const double reach = all_.largest(direction_);
    const auto lower = [&] { return bracket[0].loss <= bracket[1].loss ? size_t{0} : size_t{1}; };
    size_t low = lower();
    bool was_near_an_end = false;
    for (int64_t tries = 0; tries < most; ++tries) {
      const auto [left, right] = std::minmax(bracket[0].t, bracket[1].t);
      if ((right - left) * reach < options_.tolerance_change) break;
      double t = lowest_between(bracket[0], bracket[1], left, right);
      const double margin = 0.1 * (right - left);
      const bool near_an_end = std::min(right - t, t - left) < margin;
      const bool moved = near_an_end && (was_near_an_end || t >= right || t <= left);
      if (moved) t = std::abs(t - right) < std::abs(t - left) ? right - margin : left + margin;
      was_near_an_end = near_an_end && !moved;
      Point point = evaluate(start, t, again);
      if (falls_too_little(point) || point.loss >= bracket[low].loss) {
        bracket[1 - low] = std::move(point);
        low = lower();
        continue;
      }
      const bool flat = is_flat(point);
      if (!flat && point.slope * (bracket[1 - low].t - bracket[low].t) >= 0) bracket[1 - low] = bracket[low];
      bracket[low] = std::move(point);
      if (flat) break;
    }
    return bracket[low];
  }

  Point evaluate(const Tensor& start, double t, const Reevaluate& again) {
    move(start, t);
    const Evaluation result = [&] {
      const at::AutoGradMode with_grad(true);
      return again();
    }();
    ++evaluations_;
    Tensor gradient = take_gradient(result.grad_scale);
    const double slope = all_.inner_product(gradient, direction_);
    return {t, result.loss, std::move(gradient), slope};
  }

  // Sets the parameters to start + t x direction.
  void move(const Tensor& start, double t) const {
    const Buffers& all = buffers();
    Tensor master = all.master;
    if (!start.is_same(master)) master.copy_(start);
    master.add_(direction_, t);
    if (all.compute.defined()) Tensor(all.compute).copy_(master);
  }

  // Returns the gradient and zeroes the buffers.
  Tensor take_gradient(double scale) const {
    Tensor gradient = buffers().grad * scale;
    Tensor(buffers().grad).zero_();
    return gradient;
  }

  // The state vectors by their keys in checkpoints.
  std::vector<std::pair<std::string, Tensor>> vectors() const {
    std::vector<std::pair<std::string, Tensor>> all = {{"direction", direction_},
                                                       {"gradient", last_gradient_}};
    for (int64_t i = 0; i < options_.history_size; ++i) {
      all.emplace_back(fmt::format("parameter_change_{}", i), parameter_changes_[i]);
      all.emplace_back(fmt::format("gradient_change_{}", i), gradient_changes_[i]);
    }
    return all;
  }
  void add_piece_state(State& state, const std::string& prefix, const ParameterPiece& piece) const override {
    for (const auto& [key, tensor] : vectors()) {
      state.tensors.push_back(piece_entry(fmt::format("{}.{}.{}", prefix, key, piece.name), piece,
                                          tensor.slice(0, piece.begin, piece.end)));
    }
  }
  void add_scalars(nlohmann::json& scalars) const override {
    scalars["lbfgs"] = {{"started", started_},
                        {"length", length_},
                        {"scale", scale_},
                        {"curvatures", curvatures_},
                        {"oldest", oldest_}};
  }
  void read_scalars(const nlohmann::json& scalars) override {
    const nlohmann::json& saved = scalars.at("lbfgs");
    saved.at("started").get_to(started_);
    saved.at("length").get_to(length_);
    saved.at("scale").get_to(scale_);
    saved.at("curvatures").get_to(curvatures_);
    saved.at("oldest").get_to(oldest_);
  }

  const LbfgsOptions options_;
  const int64_t max_eval_;
  WholeModel all_;
  Tensor direction_, last_gradient_;             // [N], of the previous iteration
  Tensor parameter_changes_, gradient_changes_;  // [history_size, N], a ring
  std::vector<double>
      curvatures_;      // of the changes, oldest first: 1 / (change of gradient . change of parameters)
  int64_t oldest_ = 0;  // row of the ring
  double scale_ = 1;    // of the first approximation of the inverse Hessian
  double length_ = 0;   // of the last step, in units of the direction
  bool started_ = false;
  int64_t evaluations_ = 0;  // in this step
};

}  // namespace

std::unique_ptr<Optimizer> lbfgs(const LbfgsOptions& options) {
  settings::check_settings(options, "LBFGS");
  return std::make_unique<Lbfgs>(options);
}

}  // namespace stretto::optim
