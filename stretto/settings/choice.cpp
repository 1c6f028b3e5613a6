#include "stretto/settings/choice.h"

#include <algorithm>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/settings/check_settings.h"
#include "stretto/settings/describe.h"

namespace stretto::settings {

void Settings::check() const {
  Settings copy = *this;
  check_values(fields_of(copy));
  held_->check();
}

Choice::Choice(const std::vector<Kind>& kinds, std::string chosen_type, std::string help)
    : type(std::move(chosen_type)), help_(std::move(help)) {
  for (const Kind& kind : kinds) alternatives_.push_back({kind.type, kind.defaults});
}

void Choice::fields(Fields& field) {
  std::vector<std::string> types;
  for (const Alternative& alternative : alternatives_) types.push_back(alternative.type);
  field("type", type, help_, one_of(types));
  for (Alternative& alternative : alternatives_) {
    for (Field& setting : fields_of(alternative.settings)) {
      setting.rule = setting.rule.used_with("type", type, {alternative.type});
      field.add(std::move(setting));
    }
  }
}

Choice::Alternative& Choice::find(const std::string& name) {
  const auto found = std::ranges::find(alternatives_, name, &Alternative::type);
  if (found != alternatives_.end()) return *found;
  std::vector<std::string> types;
  for (const Alternative& alternative : alternatives_) types.push_back(alternative.type);
  refuse_name(name, types);
}

const Settings& Choice::settings() const { return const_cast<Choice*>(this)->find(type).settings; }

nlohmann::json Choice::value(const std::string& key) const {
  Settings copy = settings();
  const std::vector<Field> fields = fields_of(copy);
  const Field* field = declaration_in_use(fields, key);
  return field == nullptr ? nlohmann::json() : nlohmann::json(value_of(*field));
}

void Choice::throw_other_type() const {
  throw ConfigError("type is {}, but the program accesses the settings of another type; set type first",
                    type);
}

void Choice::throw_no_type() const {
  throw ConfigError("the program sets the settings of a type that is not registered");
}

bool Choice::operator==(const Choice& other) const {
  return type == other.type && settings() == other.settings();
}

}  // namespace stretto::settings
