#include "stretto/programs/stretto/plan_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::cli {
namespace {

using PlanJson = nlohmann::ordered_json;

std::string bytes(const PlanJson& row, const char* key) { return human_bytes(row.at(key).get<double>()); }
double seconds(const PlanJson& row) { return row.at("step_seconds").get<double>(); }
bool fits(const PlanJson& row) { return row.at("fits").get<bool>(); }

bool divides_rows(const PlanJson& row) { return row.at("sequence_parallel").get<bool>(); }

// "zero1", "zero1 tp 2" or, with sequence parallelism, "zero1 tp 2 seq".
std::string label(const PlanJson& row) {
  const int tp = row.at("tp").get<int>();
  return row.at("strategy").get<std::string>() +
         (tp > 1 ? fmt::format(" tp {}{}", tp, divides_rows(row) ? " seq" : "") : "");
}

// The description of a batch in lines of at most 80 characters, which begin at column 10.
std::string batch_lines(std::string text) {
  constexpr size_t widest = 70;
  if (const size_t cut = text.rfind(" x "); text.size() > widest && cut != std::string::npos)
    text.replace(cut, 1, "\n          ");
  return text;
}

std::string measured(const PlanJson& mesh) {
  const PlanJson& row = mesh.at("strategies").at(0);
  const int tp = row.at("tp").get<int>();
  return fmt::format(
      "measured  {}, {:.1f} ms per step\n"
      "          {} of activations, frozen tensors and libraries{}\n",
      tp == 1 ? "one rank"
              : fmt::format("{} ranks with the parts of each layer{}", tp,
                            divides_rows(row) ? " and of rows" : ""),
      1e3 * mesh.at("measured_step_seconds").get<double>(), bytes(mesh, "other_bytes_per_rank"),
      tp == 1 ? "" : " per rank");
}

}  // namespace

std::vector<const PlanJson*> PlanReport::rows() const {
  std::vector<const PlanJson*> all;
  for (const PlanJson& mesh : meshes_)
    for (const PlanJson& row : mesh.at("strategies")) all.push_back(&row);
  return all;
}

const PlanJson* PlanReport::best() const {
  const PlanJson* best = nullptr;
  for (const PlanJson* row : rows()) {
    if (fits(*row) && (best == nullptr || seconds(*row) < seconds(*best))) best = row;
  }
  if (best == nullptr) return nullptr;
  const double limit = 1.02 * seconds(*best);
  for (const PlanJson* row : rows()) {
    if (fits(*row) && seconds(*row) <= limit && row->at("bytes_per_host") < best->at("bytes_per_host"))
      best = row;
  }
  return best;
}

PlanJson PlanReport::json() const {
  PlanJson plan = meshes_.back();
  for (const char* of_text : {"batch", "cores_per_host"}) plan.erase(of_text);
  plan.erase("strategies");
  const PlanJson* const row = best();
  plan["best"] = "";
  if (row != nullptr) {
    plan["best"] = row->at("strategy");
    plan["best_mesh"] = {
        {"tp", row->at("tp")}, {"dp", row->at("dp")}, {"sequence_parallel", row->at("sequence_parallel")}};
  }
  plan["strategies"] = PlanJson::array();
  for (const PlanJson* each : rows()) plan["strategies"].push_back(*each);
  return plan;
}

std::string PlanReport::text(const std::string& strategy, const std::string& larger_mesh) const {
  const PlanJson& job = meshes_.back();
  std::string text;
  for (const PlanJson& mesh : meshes_) text += measured(mesh);
  text += fmt::format(
      "job       {}\n          {} on {}, {} and {} per host\n\n",
      batch_lines(job.at("batch").get<std::string>()), counted(job.at("ranks").get<int64_t>(), "rank"),
      counted(job.at("hosts").get<int64_t>(), "host"),
      counted(job.at("cores_per_host").get<int64_t>(), "core"), bytes(job, "memory_per_host"));
  size_t width = 8;
  for (const PlanJson* row : rows()) width = std::max(width, label(*row).size() + 1);
  text += fmt::format("{:<{}}{:>10}{:>10}{:>11}{:>8}  {:<8}\n", "strategy", width, "per rank", "per host",
                      "step", "steps/s", "bound by");
  const PlanJson* const chosen = best();
  for (const PlanJson* row : rows()) {
    text += fmt::format("{:<{}}{:>10}{:>10}{:>8.1f} ms{:>8.2f}  {:<8}{}\n", label(*row), width,
                        bytes(*row, "bytes_per_rank"), bytes(*row, "bytes_per_host"), 1e3 * seconds(*row),
                        1 / seconds(*row), row->at("bound").get<std::string>(),
                        !fits(*row)                       ? "does not fit"
                        : row == chosen                   ? "<- recommended"
                        : row->at("strategy") == strategy ? "<- the recipe's"
                                                          : "");
  }
  if (chosen == nullptr) {
    text += "\nNo strategy fits: use more hosts or ranks per host, a smaller micro-batch,";
    text += larger_mesh.empty()
                ? " or\ntraining.activation_checkpointing\n"
                : "\ntraining.activation_checkpointing, or divide layers among more ranks:\n" + larger_mesh +
                      "\n";
  } else if (chosen->at("tp") > 1) {
    const int tp = chosen->at("tp").get<int>();
    text += fmt::format("\nThe recommended mesh divides {} among {} ranks:\n--tp {}{} --strategy {}\n",
                        divides_rows(*chosen) ? "layers, and rows between them," : "each layer", tp, tp,
                        divides_rows(*chosen) ? " --sequence-parallel" : "",
                        chosen->at("strategy").get<std::string>());
  }
  return text;
}

}  // namespace stretto::cli
