#pragma once

#include <array>
#include <string_view>

namespace stretto {

// The values of settings with a closed list of names, each with its names in recipes (settings::OneOf).

// text_classification.problem_type, as in a Hugging Face config.json (models/problem_type.h).
enum class LabelProblem { single_label_classification, regression, multi_label_classification };
constexpr auto names_of(LabelProblem) {
  return std::to_array<std::string_view>(
      {"single_label_classification", "regression", "multi_label_classification"});
}

// Tasks of GLUE (metrics/glue.h).
enum class GlueName { cola, sst2, mrpc, qqp, stsb, mnli, mnli_mm, qnli, rte, wnli, ax };
constexpr auto names_of(GlueName) {
  return std::to_array<std::string_view>(
      {"cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli-mm", "qnli", "rte", "wnli", "ax"});
}

// token_classification
enum class LongSentences { window, cut, refuse };
constexpr auto names_of(LongSentences) {
  return std::to_array<std::string_view>({"window", "cut", "refuse"});
}

enum class TagConversion { keep, iob1, iob2, bio, iobes, bioes };
constexpr auto names_of(TagConversion) {
  return std::to_array<std::string_view>({"keep", "IOB1", "IOB2", "BIO", "IOBES", "BIOES"});
}

enum class LossAverage { words, sentences };
constexpr auto names_of(LossAverage) { return std::to_array<std::string_view>({"words", "sentences"}); }

enum class StateStorage { none, cpu, gpu };
constexpr auto names_of(StateStorage) { return std::to_array<std::string_view>({"none", "cpu", "gpu"}); }

// question_answering.misplaced_answers
enum class MisplacedAnswers { refuse, skip };
constexpr auto names_of(MisplacedAnswers) { return std::to_array<std::string_view>({"refuse", "skip"}); }

// training
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

// optimizer.scale_lr
enum class LrScale { none, linear, sqrt };
constexpr auto names_of(LrScale) { return std::to_array<std::string_view>({"none", "linear", "sqrt"}); }

// mode, of checkpoint and early_stopping: whether a smaller or a larger value of a metric is better.
enum class MetricMode { automatic, min, max };
constexpr auto names_of(MetricMode) { return std::to_array<std::string_view>({"auto", "min", "max"}); }

// checkpoint.when_busy
enum class WhenBusy { wait, skip };
constexpr auto names_of(WhenBusy) { return std::to_array<std::string_view>({"wait", "skip"}); }

// track.progress
enum class ProgressDisplay { automatic, line, off };
constexpr auto names_of(ProgressDisplay) { return std::to_array<std::string_view>({"auto", "line", "off"}); }

// resume, which is one of these or the folder of a checkpoint.
enum class ResumeMode { automatic, required, none };
constexpr auto names_of(ResumeMode) { return std::to_array<std::string_view>({"auto", "true", "false"}); }

}  // namespace stretto
