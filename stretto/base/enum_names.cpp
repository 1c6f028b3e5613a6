#include "stretto/base/enum_names.h"

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {

void refuse_name(std::string_view name, std::span<const std::string> names) {
  throw ConfigError("\"{}\" is not one of {}{}", name, fmt::join(names, ", "), did_you_mean(name, names));
}

}  // namespace stretto
