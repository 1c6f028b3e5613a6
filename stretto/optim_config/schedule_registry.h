#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/choice.h"

namespace stretto::optim {

// A type of `scheduler:` in recipes, and the function that makes one from its settings.
struct ScheduleKind {
  settings::Kind kind;
  std::function<std::unique_ptr<Schedule>(const settings::Settings&)> make;

  const std::string& name() const { return kind.type; }
};

// The kind whose settings are `Options`, a struct that declares its fields(), and whose schedules `make`
// creates.
template <class Options>
ScheduleKind schedule_kind(std::string type, std::string help,
                           std::unique_ptr<Schedule> (*make)(const Options&)) {
  return {{std::move(type), std::move(help), settings::Settings(Options{})},
          [make](const settings::Settings& settings) { return make(*settings.get<Options>()); }};
}

// Makes a type available to recipes: register_schedule(schedule_kind("Linear2", "help", linear2)). Throws
// ConfigError if the name is taken. Not thread-safe: call it at the start of a program.
void register_schedule(ScheduleKind kind);

// All types, in the order of registration.
std::vector<settings::Kind> schedule_kinds();

// The schedule that `choice` describes. Throws ConfigError for an unknown type, and for settings that are out
// of range or contradict each other.
std::unique_ptr<Schedule> make_schedule(const settings::Choice& choice);

}  // namespace stretto::optim
