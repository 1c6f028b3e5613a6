#include "stretto/parallel/engine_facts.h"

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::parallel {

std::string describe(const EngineFacts& facts, const std::string& title, const std::string& compute) {
  const char* master = master_dtype(facts.precision) == at::kDouble ? "fp64" : "fp32";
  const EngineMemory& bytes = facts.memory;
  const auto human = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  const auto number_of = [](size_t count, const char* noun) {
    return counted(static_cast<int64_t>(count), noun);
  };
  return fmt::format(
      "{:<11}{} in {}, {}; {}, {}\n"
      "types      compute {} | master {} | gradient {} | reduce {}\n"
      "memory     {} per rank: master {}, gradients {}{}{}{}; plus activations{}",
      title, counted(facts.trainable_elements, "trainable parameter"), number_of(facts.units.size(), "unit"),
      number_of(facts.buckets, "gradient bucket"), number_of(facts.tensors.frozen.size(), "frozen tensor"),
      number_of(facts.tensors.buffers.size(), "buffer"), compute, master, master, master,
      human(bytes.total()), human(bytes.master), human(bytes.gradients),
      bytes.compute > 0 ? ", compute copy " + human(bytes.compute) : "",
      facts.optimizer.empty() ? "; the optimizer's state"
      : facts.optimizer_folder.empty()
          ? fmt::format(", {} {}", facts.optimizer, human(bytes.optimizer))
          : fmt::format("; {} {} in files of {}", facts.optimizer, human(bytes.optimizer_in_files),
                        facts.optimizer_folder.string()),
      (bytes.average > 0 ? ", average " + human(bytes.average) : "") +
          (bytes.parameters_in_files > 0 ? "; parameters " + human(bytes.parameters_in_files) +
                                               " in files of " + facts.parameter_folder.string()
                                         : ""),
      bytes.parameters_are_shared
          ? fmt::format("\nsharing    {} ranks of this host hold one copy of the parameters{}", facts.shards,
                        facts.copies > 1 ? fmt::format("; {} copies", facts.copies) : "")
          : "");
}

}  // namespace stretto::parallel
