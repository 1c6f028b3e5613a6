#include "stretto/settings/fields.h"

namespace stretto::settings {

std::vector<const Field*> declarations(const std::vector<Field>& fields, std::string_view key) {
  std::vector<const Field*> found;
  for (const Field& field : fields) {
    if (field.key == key) found.push_back(&field);
  }
  return found;
}

const Field* declaration_in_use(const std::vector<Field>& fields, std::string_view key) {
  const auto all = declarations(fields, key);
  for (const Field* field : all) {
    if (field->rule.in_use()) return field;
  }
  return all.empty() ? nullptr : all[0];
}

}  // namespace stretto::settings
