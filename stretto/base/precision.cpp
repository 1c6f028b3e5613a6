#include "stretto/base/precision.h"

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"

namespace stretto {

const std::map<std::string, std::string>& precision_spellings() {
  static const std::map<std::string, std::string> spellings = {
      {"32", "fp32"}, {"32-true", "fp32"}, {"64", "fp64"}, {"64-true", "fp64"}, {"bf16-mixed", "bf16"}};
  return spellings;
}

const std::map<std::string, std::string>& refused_precisions() {
  static const std::string fp16 =
      "fp16 needs loss scaling and a GPU, which this version does not support; bf16 takes as little memory and needs no scaling";
  static const std::map<std::string, std::string> reasons = {
      {"16", fp16},
      {"fp16", fp16},
      {"16-mixed", fp16},
      {"16-true", fp16},
      {"bf16-true", "master weights are always kept in fp32, because bf16 drops small updates; choose bf16"}};
  return reasons;
}

Precision parse_precision(const std::string& name) {
  const auto refused = refused_precisions().find(name);
  if (refused != refused_precisions().end()) throw ConfigError("\"{}\": {}", name, refused->second);
  const auto spelled = precision_spellings().find(name);
  return parse_enum<Precision>(spelled == precision_spellings().end() ? name : spelled->second);
}

}  // namespace stretto
