#include "stretto/trainer/run/optimizer_set.h"

#include <algorithm>

#include <fnmatch.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/optim/parameter_piece.h"

namespace stretto::trainer {
namespace {

bool matches(const std::string& pattern, const std::string& parameter) {
  return ::fnmatch(pattern.c_str(), parameter.c_str(), 0) == 0;
}

std::string first_of(const std::vector<std::string>& names) {
  constexpr size_t shown = 4;
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + std::min(shown, names.size()), ", "),
                     names.size() > shown ? ", ..." : "");
}

}  // namespace

OptimizerSet::OptimizerSet(std::vector<NamedOptimizer> parts)
    : Optimizer(optim::StepRates{}), parts_(std::move(parts)) {
  std::set<std::string> names;
  for (const NamedOptimizer& part : parts_) {
    if (part.name.empty())
      throw ConfigError("configure_optimizers: the optimizer of \"{}\" has no name; name each", part.pattern);
    if (!names.insert(part.name).second)
      throw ConfigError("configure_optimizers: two optimizers are named \"{}\"; rename one", part.name);
    const auto require = [&](const void* given, const char* what, const char* example) {
      if (given == nullptr)
        throw ConfigError("configure_optimizers: the {} \"{}\" is a null pointer; expected one, such as {}",
                          what, part.name, example);
    };
    require(part.optimizer.get(), "optimizer", "optim::adamw({.lr = 1e-4})");
    require(part.schedule.get(), "schedule of", "optim::constant()");
    if (part.optimizer->reevaluates() || part.optimizer->placement() == optim::Placement::whole_model) {
      throw ConfigError(
          "configure_optimizers: {} (\"{}\") evaluates its batch several times, which manual optimization cannot; choose another optimizer",
          part.optimizer->name(), part.name);
    }
  }
}

std::string OptimizerSet::name() const {
  std::vector<std::string> names;
  for (const NamedOptimizer& part : parts_) names.push_back(part.name + " " + part.optimizer->name());
  return fmt::format("{}", fmt::join(names, ", "));
}

optim::Placement OptimizerSet::placement() const {
  const auto strictest = std::ranges::max_element(
      parts_, {}, [](const NamedOptimizer& part) { return static_cast<int>(part.optimizer->placement()); });
  return strictest->optimizer->placement();
}

int64_t OptimizerSet::state_bytes() const {
  int64_t bytes = 0;
  for (const NamedOptimizer& part : parts_) bytes += part.optimizer->state_bytes();
  return bytes;
}

bool OptimizerSet::keeps_idle_rows() const {
  return std::ranges::any_of(parts_,
                             [](const NamedOptimizer& part) { return part.optimizer->keeps_idle_rows(); });
}

size_t OptimizerSet::index(const std::string& name, const char* call) const {
  const auto found = std::ranges::find(parts_, name, &NamedOptimizer::name);
  if (found != parts_.end()) return static_cast<size_t>(found - parts_.begin());
  std::vector<std::string> names;
  for (const NamedOptimizer& part : parts_) names.push_back(part.name);
  throw ConfigError("{}(\"{}\"): there is no optimizer of this name{}; configure_optimizers returned {}",
                    call, name, did_you_mean(name, names), fmt::join(names, ", "));
}

size_t OptimizerSet::owner_of(const std::string& parameter) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (matches(parts_[i].pattern, parameter)) return i;
  }
  std::vector<std::string> patterns;
  for (const NamedOptimizer& part : parts_)
    patterns.push_back(fmt::format("\"{}\" of \"{}\"", part.pattern, part.name));
  throw ConfigError(
      "configure_optimizers: no optimizer has the parameter {}, which matches none of {}; use a pattern like \"{}.*\", or freeze it with a group",
      parameter, fmt::join(patterns, ", "), parameter.substr(0, parameter.find('.')));
}

void OptimizerSet::require_parameters(const std::vector<std::string>& names) const {
  std::vector<bool> has_some(parts_.size());
  for (const std::string& name : names) has_some[owner_of(name)] = true;
  const auto without = std::ranges::find(has_some, false);
  if (without == has_some.end()) return;
  const NamedOptimizer& part = parts_[static_cast<size_t>(without - has_some.begin())];
  const auto match =
      std::ranges::find_if(names, [&](const std::string& name) { return matches(part.pattern, name); });
  if (match == names.end()) {
    throw ConfigError(
        "configure_optimizers: the optimizer \"{}\" has no parameters: \"{}\" matches none that is trainable ({}); change the pattern, or remove the optimizer",
        part.name, part.pattern, first_of(names));
  }
  const NamedOptimizer& owner = parts_[owner_of(*match)];
  throw ConfigError(
      "configure_optimizers: the optimizer \"{}\" has no parameters: those that \"{}\" matches belong to \"{}\" (\"{}\"), which comes before it; exchange the two, or change the pattern of \"{}\"",
      part.name, part.pattern, owner.name, owner.pattern, owner.name);
}

// Each optimizer is bound to the range of the buffers from its first to its last parameter; it skips those of
// others in between.
void OptimizerSet::make_state(const Allocator& allocator) {
  std::vector<std::vector<optim::ParameterPiece>> pieces_of(parts_.size());
  ranges_.assign(parts_.size(), {0, 0});
  for (const optim::ParameterPiece& piece : pieces()) {
    const size_t owner = owner_of(piece.name);
    auto& [begin, end] = ranges_[owner];
    auto& own = pieces_of[owner];
    if (own.empty()) begin = piece.begin;
    end = piece.end;
    own.push_back(piece);
    own.back().begin -= begin;
    own.back().end -= begin;
    if (!parts_[owner].optimizer->keeps_idle_rows()) own.back().row_width = 0;
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto [begin, end] = ranges_[i];
    parts_[i].optimizer->bind(slice(buffers(), begin, end), std::move(pieces_of[i]), allocator, in_files());
  }
}

void OptimizerSet::update(const optim::StepRates& rates, double grad_scale, int64_t /*step*/,
                          const optim::TouchedRows& /*touched*/) {
  parts_[selected_].optimizer->step(rates, grad_scale);
}

void OptimizerSet::add_parts(State& state, const std::string& prefix) const {
  for (const NamedOptimizer& part : parts_) {
    const std::string name = prefix + "." + part.name;
    part.optimizer->add_state(state, name);
    if (const nlohmann::json schedule = part.schedule->state(); !schedule.is_null())
      state.scalars[name + ".scheduler"] = schedule;
  }
}

void OptimizerSet::resume_parts(const State& state, const std::string& prefix) {
  for (NamedOptimizer& part : parts_) {
    const std::string name = prefix + "." + part.name;
    part.optimizer->resume(state, name);
    if (state.scalars.contains(name + ".scheduler"))
      part.schedule->resume(state.scalars.at(name + ".scheduler"));
  }
}

}  // namespace stretto::trainer
