#include "stretto/trainer/profile/profile.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "stretto/parallel/phase.h"

namespace stretto::trainer {
namespace {

struct ShownPhase {
  const char* name;
  const char* shown;
};
constexpr std::array<ShownPhase, 6> shown_phases = {{{phase::data, "data"},
                                                     {phase::forward, "forward"},
                                                     {phase::backward, "backward"},
                                                     {phase::reduce, "communication during backward"},
                                                     {phase::wait, "waiting for communication"},
                                                     {phase::optimizer, "optimizer"}}};

// The time spent on measuring a shape, in s.
constexpr std::chrono::duration<double> seconds_per_shape{0.03};
constexpr int rounds_per_shape = 10;

// The inputs of an operator that are multiplied: [.., m, k] and [.., k, n].
struct MatmulOperator {
  const char* name;
  size_t left, right;
};
constexpr std::array<MatmulOperator, 7> matmul_operators = {{{"aten::mm", 0, 1},
                                                             {"aten::bmm", 0, 1},
                                                             {"aten::addmm", 1, 2},
                                                             {"aten::addmm_", 1, 2},
                                                             {"aten::baddbmm", 1, 2},
                                                             {"aten::baddbmm_", 1, 2},
                                                             {"aten::mkldnn_linear", 0, 1}}};

// Returns the matmuls among the events, without those within another matmul.
std::vector<const TimedEvent*> outermost_matmuls(std::span<const TimedEvent> events) {
  std::vector<const TimedEvent*> matmuls;
  for (const TimedEvent& event : events) {
    if (event.operations > 0) matmuls.push_back(&event);
  }
  std::ranges::sort(matmuls, [](const TimedEvent* a, const TimedEvent* b) {
    return std::tuple(a->thread, a->start, -a->seconds) < std::tuple(b->thread, b->start, -b->seconds);
  });
  std::vector<const TimedEvent*> outermost;
  for (const TimedEvent* matmul : matmuls) {
    const bool nested = !outermost.empty() && outermost.back()->thread == matmul->thread &&
                        matmul->start < outermost.back()->start + outermost.back()->seconds;
    if (!nested) outermost.push_back(matmul);
  }
  return outermost;
}

double seconds_of(std::span<const TimedEvent> events, std::string_view name) {
  double seconds = 0;
  for (const TimedEvent& event : events) {
    if (event.name == name) seconds += event.seconds;
  }
  return seconds;
}

}  // namespace

std::optional<kernels::MatmulShape> layer_matmul(std::string_view name,
                                                 std::span<const std::vector<int64_t>> shapes,
                                                 std::string_view dtype) {
  const auto role = std::ranges::find(kernels::all_matmul_roles, name, [](kernels::MatmulRole one) {
    return std::string_view(kernels::matmul_event(one));
  });
  if (role == kernels::all_matmul_roles.end() || shapes.size() < 2) return std::nullopt;
  if (shapes[0].size() != 2 || shapes[1].size() != 2) return std::nullopt;
  const int64_t m = shapes[0][0], k = shapes[0][1], n = shapes[1][1];
  kernels::MatmulShape matmul = {.role = *role, .dtype = at::kFloat};
  if (dtype == "c10::BFloat16") matmul.dtype = at::kBFloat16;
  if (dtype == "double") matmul.dtype = at::kDouble;
  switch (*role) {
    case kernels::MatmulRole::forward:
      matmul.rows = m, matmul.in = k, matmul.out = n;
      break;
    case kernels::MatmulRole::input_gradient:
      matmul.rows = m, matmul.in = n, matmul.out = k;
      break;
    case kernels::MatmulRole::weight_gradient:
      matmul.rows = k, matmul.in = n, matmul.out = m;
      break;
  }
  return matmul;
}

double matmul_operations(std::string_view name, std::span<const std::vector<int64_t>> shapes) {
  const auto matmul = std::ranges::find(matmul_operators, name,
                                        [](const MatmulOperator& one) { return std::string_view(one.name); });
  if (matmul == matmul_operators.end() || shapes.size() <= matmul->right) return 0;
  const auto& left = shapes[matmul->left];
  const auto& right = shapes[matmul->right];
  if (left.size() < 2 || right.size() < 2) return 0;
  double operations = 2.0 * static_cast<double>(right[right.size() - 1]);
  for (const int64_t extent : left) operations *= static_cast<double>(extent);
  return operations;
}

Profile summarise(std::span<const TimedEvent> events, int64_t steps, double seconds) {
  const auto count = static_cast<double>(steps);
  Profile profile;
  profile.steps = steps;
  profile.step_seconds = seconds / count;
  const double reduce = seconds_of(events, phase::reduce);
  double rest = seconds;
  for (const auto& [name, shown] : shown_phases) {
    double own = seconds_of(events, name);
    if (name == phase::backward) own -= reduce;
    profile.rows.push_back({shown, own / count});
    rest -= own;
  }
  profile.rows.push_back({"other", rest / count});
  double operations = 0;
  for (const TimedEvent* event : outermost_matmuls(events)) {
    profile.matmul_seconds += event->seconds / count;
    operations += event->operations / count;
    if (event->matmul) {
      profile.layer_matmuls[*event->matmul] += 1;
    } else {
      profile.other_matmul_seconds += event->seconds / count;
    }
  }
  if (profile.matmul_seconds > 0) profile.matmul_rate = operations / profile.matmul_seconds;
  return profile;
}

MatmulFloor measure_floor(const Profile& profile) {
  MatmulFloor floor;
  for (const auto& [shape, count] : profile.layer_matmuls) {
    const auto times = kernels::time_matmul(shape, rounds_per_shape, seconds_per_shape);
    const auto best = std::ranges::min_element(times, {}, &kernels::MatmulTime::seconds);
    floor.seconds += best->seconds * static_cast<double>(count) / static_cast<double>(profile.steps);
    for (const kernels::MatmulTime& time : times) {
      MatmulFloor::Rate& rate = floor.rates[{shape.role, time.library}];
      rate.operations += shape.operations() * static_cast<double>(count);
      rate.seconds += time.seconds * static_cast<double>(count);
    }
  }
  floor.seconds += profile.other_matmul_seconds;
  return floor;
}

std::string to_text(const MatmulFloor& floor, double step_seconds) {
  std::string text;
  for (const kernels::MatmulRole role : kernels::all_matmul_roles) {
    std::string line;
    for (const auto& [key, rate] : floor.rates) {
      if (key.first != role) continue;
      line += fmt::format("{}{} {:.0f}", line.empty() ? "" : ", ", kernels::name_of(key.second),
                          rate.operations / rate.seconds / 1e9);
    }
    if (!line.empty()) text += fmt::format("{:32} {} GFLOP/s alone\n", kernels::name_of(role), line);
  }
  if (floor.seconds > 0) {
    text += fmt::format(
        "floor {:.2f} ms: the matmuls alone, by the fastest library; the step takes {:.2f} times as long\n",
        1e3 * floor.seconds, step_seconds / floor.seconds);
  }
  return text;
}

std::string to_text(const Profile& profile, double peak) {
  std::string text =
      fmt::format("{:32} {:>10} {:>7}\n", fmt::format("mean of {} steps", profile.steps), "ms/step", "share");
  const auto row = [&](const std::string& name, double seconds) {
    text +=
        fmt::format("{:32} {:10.2f} {:6.1f} %\n", name, 1e3 * seconds, 100 * seconds / profile.step_seconds);
  };
  for (const auto& [name, seconds] : profile.rows) row(name, seconds);
  row("step", profile.step_seconds);
  row("matmuls (of the above)", profile.matmul_seconds);
  text += fmt::format("matmuls run at {:.0f} GFLOP/s", profile.matmul_rate / 1e9);
  if (peak > 0)
    text += fmt::format(", {:.0f} % of the peak of {:.0f}", 100 * profile.matmul_rate / peak, peak / 1e9);
  return text + "\n";
}

}  // namespace stretto::trainer
