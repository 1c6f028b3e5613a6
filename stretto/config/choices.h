#pragma once

#include <array>
#include <string_view>

namespace stretto {

// The values of settings with a closed list of names, each with its names in recipes (settings::OneOf).

// Values of training.device.
enum class DeviceChoice { automatic, cpu, cuda };
constexpr auto names_of(DeviceChoice) { return std::to_array<std::string_view>({"auto", "cpu", "cuda"}); }

enum class KernelChoice { fast, reference };
constexpr auto names_of(KernelChoice) { return std::to_array<std::string_view>({"fast", "reference"}); }

enum class SharedParameters { automatic, off };
constexpr auto names_of(SharedParameters) { return std::to_array<std::string_view>({"auto", "off"}); }

enum class OnNonfinite { stop, skip, rollback };
constexpr auto names_of(OnNonfinite) { return std::to_array<std::string_view>({"stop", "skip", "rollback"}); }

enum class OnSpike { off, stop, skip, rollback };
constexpr auto names_of(OnSpike) {
  return std::to_array<std::string_view>({"off", "stop", "skip", "rollback"});
}

// Values of optimizer.scale_lr.
enum class LrScale { none, linear, sqrt };
constexpr auto names_of(LrScale) { return std::to_array<std::string_view>({"none", "linear", "sqrt"}); }

// Values of `mode` in checkpoint and early_stopping: whether a smaller or a larger value of a metric is
// better.
enum class MetricMode { automatic, min, max };
constexpr auto names_of(MetricMode) { return std::to_array<std::string_view>({"auto", "min", "max"}); }

// Values of checkpoint.when_busy.
enum class WhenBusy { wait, skip };
constexpr auto names_of(WhenBusy) { return std::to_array<std::string_view>({"wait", "skip"}); }

// Values of track.progress.
enum class ProgressDisplay { automatic, line, off };
constexpr auto names_of(ProgressDisplay) { return std::to_array<std::string_view>({"auto", "line", "off"}); }

// Values of resume, which may also be the folder of a checkpoint.
enum class ResumeMode { automatic, required, none };
constexpr auto names_of(ResumeMode) { return std::to_array<std::string_view>({"auto", "true", "false"}); }

}  // namespace stretto
