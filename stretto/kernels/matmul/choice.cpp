#include "stretto/kernels/matmul/choice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "stretto/base/clock.h"

namespace stretto::kernels {
namespace {

// A timed matmul takes about 1 to 10 ms in fp32. On an Intel Xeon, libraries that are equal at 100 rows
// differ by a tenth at 256.
constexpr double fewest_operations = 1.2e8, most_operations = 1e9;
constexpr double share_of_step = 1.0 / 400;  // all matmuls that are timed take about half as long as a step
constexpr int64_t fewest_rows = 16;
constexpr size_t agreeing_rounds = 3, most_rounds = 8;
constexpr double most_seconds = 5;       // of all rounds: on a busy machine, more of them do not agree either
constexpr double clearly_faster = 0.97;  // fraction of the preferred library's time

using Clock = std::chrono::steady_clock;
using Seconds = std::map<MatmulLibrary, double>;
using Round = std::array<Seconds, all_matmul_roles.size()>;

std::vector<MatmulTime> time_once(const MatmulShape& shape) {
  return time_matmul(shape, /*rounds=*/1, std::chrono::seconds(0));
}

double timed_operations(const std::vector<LinearMaps>& maps, int64_t rows) {
  double step = 0;
  for (const LinearMaps& map : maps) {
    const MatmulShape shape = {.rows = rows, .in = map.in, .out = map.out};
    step +=
        static_cast<double>(all_matmul_roles.size()) * static_cast<double>(map.count) * shape.operations();
  }
  return std::clamp(share_of_step * step, fewest_operations, most_operations);
}

Round time_all(const std::vector<LinearMaps>& maps, at::ScalarType dtype, int64_t rows,
               const MatmulTimer& time) {
  const double most = timed_operations(maps, rows);
  Round round;
  for (const MatmulRole role : all_matmul_roles) {
    for (const LinearMaps& map : maps) {
      MatmulShape shape = {.role = role, .dtype = dtype, .rows = 1, .in = map.in, .out = map.out};
      const auto most_rows = static_cast<int64_t>(most / shape.operations());
      shape.rows = std::min(rows, std::max(fewest_rows, most_rows));
      for (const MatmulTime& took : time(shape))
        round[static_cast<size_t>(role)][took.library] += took.seconds * static_cast<double>(map.count);
    }
  }
  return round;
}

MatmulLibrary fastest(const Seconds& seconds) {
  const bool has_own = seconds.contains(MatmulLibrary::own);
  const MatmulLibrary preferred = has_own ? MatmulLibrary::own : MatmulLibrary::aten;
  const auto best = std::ranges::min_element(seconds, {}, &Seconds::value_type::second);
  return best->second < clearly_faster * seconds.at(preferred) ? best->first : preferred;
}

MatmulChoice fastest(const Round& round) {
  MatmulChoice choice;
  for (size_t role = 0; role < round.size(); ++role) choice.of_role[role] = fastest(round[role]);
  return choice;
}

void keep_shorter(Round& shortest, const Round& round) {
  for (size_t role = 0; role < round.size(); ++role) {
    for (const auto& [library, seconds] : round[role]) {
      const auto [known, is_new] = shortest[role].try_emplace(library, seconds);
      known->second = std::min(known->second, seconds);
    }
  }
}

double speedup_of(const MatmulChoice& choice, const Round& shortest) {
  double aten = 0, chosen = 0;
  for (size_t role = 0; role < shortest.size(); ++role) {
    aten += shortest[role].at(MatmulLibrary::aten);
    chosen += shortest[role].at(choice.of_role[role]);
  }
  return aten / chosen;
}

// Times the library and the kernels in turns.
FewRowsTimer few_rows_timer(const LinearMaps& map, at::ScalarType dtype, MatmulLibrary library) {
  // The copies of the weights exceed the caches, since a model's layers are read from memory.
  constexpr int64_t bytes = int64_t{64} << 20;
  const auto bytes_each = map.out * map.in * static_cast<int64_t>(c10::elementSize(dtype));
  std::vector<Tensor> weights(static_cast<size_t>(std::clamp<int64_t>(bytes / bytes_each, 1, 16)));
  for (Tensor& weight : weights) {
    weight = map.transposed ? at::full({map.in, map.out}, 0.5, dtype)
                            : at::full({map.out, map.in}, 0.5, dtype).t();
  }
  return [=](int64_t rows) {
    const at::NoGradGuard no_grad;
    const Tensor a = at::full({rows, map.in}, 0.5, dtype), out = at::empty({rows, map.out}, dtype);
    const auto seconds = [&](const auto& multiply_one) {
      const auto start = Clock::now();
      for (const Tensor& weight : weights) multiply_one(weight);
      return seconds_since(start);
    };
    const auto kernel_seconds = [&](FewRowsKernel kernel) {
      return seconds(
          [&](const Tensor& weight) { multiply_few_rows(out, a, weight, /*accumulate=*/false, kernel); });
    };
    FewRowsTimes times;
    times.library =
        seconds([&](const Tensor& weight) { multiply_by(library, out, a, weight, /*accumulate=*/false); });
    times.vectors = kernel_seconds(FewRowsKernel::vectors);
    if (is_usable(FewRowsKernel::tiles, dtype)) times.tiles = kernel_seconds(FewRowsKernel::tiles);
    return times;
  };
}

// The kernel to use instead of the library, if any is as fast.
std::optional<FewRowsKernel> faster_than_library(const FewRowsTimes& took) {
  const bool tiles = took.tiles < clearly_faster * took.vectors;
  if ((tiles ? took.tiles : took.vectors) > took.library) return std::nullopt;
  return tiles ? FewRowsKernel::tiles : FewRowsKernel::vectors;
}

// Repeats a decision until three successive ones are equal. Counts rounds and seconds.
template <class Decision>
class Agreement {
 public:
  bool wants_another() const {
    return !is_reached() && rounds_ < most_rounds && (rounds_ == 0 || seconds_since(start_) < most_seconds);
  }
  void add(const Decision& decision) {
    equal_ = rounds_ > 0 && decision == last_ ? equal_ + 1 : 1;
    last_ = decision;
    ++rounds_;
  }
  bool is_reached() const { return equal_ == agreeing_rounds; }
  const Decision& last() const { return last_; }

 private:
  Clock::time_point start_ = Clock::now();
  size_t rounds_ = 0, equal_ = 0;
  Decision last_ = {};
};

}  // namespace

MeasuredChoice choose_by_time(const std::vector<LinearMaps>& maps, at::ScalarType dtype, int64_t rows,
                              const MatmulTimer& given_time) {
  const MatmulTimer time = given_time ? given_time : time_once;
  Round shortest;
  Agreement<MatmulChoice> choices;
  while (choices.wants_another()) {
    const Round times = time_all(maps, dtype, rows, time);
    keep_shorter(shortest, times);
    choices.add(fastest(times));
  }
  const MatmulChoice choice = choices.is_reached() ? choices.last() : fastest(shortest);
  return {choice, speedup_of(choice, shortest), choices.is_reached()};
}

FewRowsChoice most_rows_for_kernel(const LinearMaps& map, at::ScalarType dtype, MatmulLibrary library,
                                   const FewRowsTimer& given_time) {
  const FewRowsTimer time = given_time ? given_time : few_rows_timer(map, dtype, library);
  FewRowsChoice choice;
  for (int64_t rows = most_few_rows; rows > 0; rows /= 2) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    FewRowsTimes shortest = {infinity, infinity, infinity};
    Agreement<std::optional<FewRowsKernel>> decisions;
    while (decisions.wants_another()) {
      const FewRowsTimes took = time(rows);
      shortest = {std::min(shortest.library, took.library), std::min(shortest.vectors, took.vectors),
                  std::min(shortest.tiles, took.tiles)};
      decisions.add(faster_than_library(took));
    }
    choice.is_certain &= decisions.is_reached();
    if (const auto kernel = decisions.is_reached() ? decisions.last() : faster_than_library(shortest)) {
      choice.rows = rows;
      choice.kernel = *kernel;
      break;
    }
  }
  return choice;
}

}  // namespace stretto::kernels
