#include "stretto/model_config/problem_type.h"

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"

namespace stretto {

ProblemType read_problem_type(const nlohmann::json& config, size_t labels, const std::string& source) {
  const auto found = config.find("problem_type");
  if (found == config.end() || !found->is_string())
    return labels == 1 ? ProblemType::regression : ProblemType::single_label_classification;
  try {
    return parse_enum<ProblemType>(found->get_ref<const std::string&>());
  } catch (const ConfigError& error) {
    throw ConfigError("{}: problem_type: {}", source, error.what());
  }
}

}  // namespace stretto
