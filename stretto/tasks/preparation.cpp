#include "stretto/tasks/preparation.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/config/task_kind.h"

namespace stretto::tasks {
namespace {

std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::optional<bool> prefix_space(const Recipe& recipe) {
  if (recipe.tokenizer.add_prefix_space || !task_kind(recipe).splits_words)
    return recipe.tokenizer.add_prefix_space;
  return true;
}

text::Tokenizer load_tokenizer(const Recipe& recipe, const std::filesystem::path& folder) {
  return text::Tokenizer::load(
      folder, {.lowercase = recipe.tokenizer.lowercase, .add_prefix_space = prefix_space(recipe)});
}

void warn_of_similar_labels(const Mesh& mesh, const std::string& file,
                            const std::map<std::string, data::LabelUse>& uses) {
  if (mesh.world().rank() != 0) return;
  if (const std::string text = data::describe_similar_labels(file, uses); !text.empty())
    log::warning("{}", text);
}

std::vector<double> label_weights(const Recipe& recipe, const std::string& setting,
                                  const std::vector<std::string>& given, const std::string& what,
                                  const std::vector<std::string>& labels) {
  if (given.empty()) return {};
  const std::string place = recipe.origins.label(setting);
  std::vector<double> weights(labels.size(), 1);
  std::vector<bool> seen(labels.size());
  for (const std::string& text : given) {
    const size_t equals = text.rfind('=');
    const auto weight = equals == std::string::npos ? std::nullopt : parse_double(text.substr(equals + 1));
    if (!weight || !std::isfinite(*weight) || *weight <= 0)
      throw ConfigError("{}: \"{}\" is not {}=WEIGHT with a positive weight, such as \"{}=2.5\"", place, text,
                        upper_case(what), labels.front());
    const std::string name = text.substr(0, equals);
    const auto label = static_cast<size_t>(std::ranges::find(labels, name) - labels.begin());
    if (label == labels.size())
      throw ConfigError("{}: \"{}\" is not a {}{}; {}s are {}", place, name, what, did_you_mean(name, labels),
                        what, fmt::join(labels, ", "));
    if (seen[label]) throw ConfigError("{}: the {} \"{}\" occurs twice; remove one", place, what, name);
    seen[label] = true;
    weights[label] = *weight;
  }
  return weights;
}

}  // namespace stretto::tasks
