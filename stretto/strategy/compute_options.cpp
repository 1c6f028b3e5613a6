#include "stretto/strategy/compute_options.h"

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/strategy/strategy.h"

namespace stretto {
namespace {

template <class Parse>
auto labelled(const OptionLabels& labels, const char* option, const Parse& parse) {
  try {
    return parse();
  } catch (const ConfigError& error) {
    throw ConfigError("{}{}", labels.label(option), error.what());
  }
}

// Parses `name`, which must agree with the launcher's strategy.
Strategy parse_agreed_strategy(const std::string& name, const OptionLabels& labels) {
  Strategy strategy = labelled(labels, "strategy", [&] { return parse_strategy(name); });
  const auto launched = launched_strategy();
  if (!launched) return strategy;
  if (labels.given("strategy") && !strategy.agrees_with(*launched)) {
    throw ConfigError("{}\"{}\" contradicts the launcher's --strategy {} (STRETTO_STRATEGY); remove one",
                      labels.label("strategy"), name, launched->name());
  }
  strategy.kind = launched->kind;
  strategy.in_host_memory = strategy.in_host_memory || launched->in_host_memory;
  if (launched->precision) strategy.precision = launched->precision;
  strategy.optimizer_in_files |= launched->optimizer_in_files;
  strategy.parameters_in_files |= launched->parameters_in_files;
  return strategy;
}

}  // namespace

ComputeOptions parse_compute_options(const ComputeNames& names, const OptionLabels& labels) {
  const Strategy strategy = parse_agreed_strategy(names.strategy, labels);
  const Precision precision = labelled(labels, "precision", [&] { return parse_precision(names.precision); });
  if (strategy.precision && *strategy.precision != precision && labels.given("precision")) {
    throw ConfigError("{}\"{}\" sets {} but {} sets {}; change one", labels.label("strategy"),
                      launched_strategy() ? strategy.name() : names.strategy, name_of(*strategy.precision),
                      labels.mention("precision"), name_of(precision));
  }
  return {.strategy = strategy.kind,
          .in_host_memory = strategy.in_host_memory,
          .precision = strategy.precision.value_or(precision),
          .products = labelled(labels, "products", [&] { return parse_enum<Products>(names.products); }),
          .optimizer_in_files = strategy.optimizer_in_files,
          .parameters_in_files = strategy.parameters_in_files};
}

}  // namespace stretto
