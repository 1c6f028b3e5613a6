#include "stretto/models/problem_type.h"

#include <array>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

constexpr std::array problem_types = {ProblemType::single_label_classification, ProblemType::regression,
                                      ProblemType::multi_label_classification};

}  // namespace

const char* name_of(ProblemType problem) {
  switch (problem) {
    case ProblemType::regression:
      return "regression";
    case ProblemType::multi_label_classification:
      return "multi_label_classification";
    case ProblemType::single_label_classification:
      break;
  }
  return "single_label_classification";
}

ProblemType parse_problem_type(const std::string& name, const std::string& place) {
  std::vector<std::string> names;
  for (const ProblemType problem : problem_types) {
    if (name == name_of(problem)) return problem;
    names.emplace_back(name_of(problem));
  }
  throw ConfigError("{}: \"{}\" is not a problem type{}; expected {}", place, name, did_you_mean(name, names),
                    fmt::join(names, ", "));
}

ProblemType read_problem_type(const nlohmann::json& config, size_t labels, const std::string& source) {
  const auto found = config.find("problem_type");
  if (found != config.end() && found->is_string())
    return parse_problem_type(found->get<std::string>(), source + ": problem_type");
  return labels == 1 ? ProblemType::regression : ProblemType::single_label_classification;
}

}  // namespace stretto
