#include "stretto/base/precision.h"

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"

namespace stretto {

const std::map<std::string, std::string>& precision_spellings() {
  static const std::map<std::string, std::string> spellings = {
      {"32", "fp32"}, {"32-true", "fp32"},  {"64", "fp64"},        {"64-true", "fp64"},
      {"16", "fp16"}, {"16-mixed", "fp16"}, {"bf16-mixed", "bf16"}};
  return spellings;
}

const std::map<std::string, std::string>& refused_precisions() {
  const auto drops_updates = [](const char* name) {
    return fmt::format("master weights are always kept in fp32, because {0} drops small updates; choose {0}",
                       name);
  };
  static const std::map<std::string, std::string> reasons = {{"16-true", drops_updates("fp16")},
                                                             {"bf16-true", drops_updates("bf16")}};
  return reasons;
}

Precision parse_precision(const std::string& name) {
  const auto refused = refused_precisions().find(name);
  if (refused != refused_precisions().end()) throw ConfigError("\"{}\": {}", name, refused->second);
  const auto spelled = precision_spellings().find(name);
  return parse_enum<Precision>(spelled == precision_spellings().end() ? name : spelled->second);
}

}  // namespace stretto
