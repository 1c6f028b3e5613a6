#include "stretto/config/interval.h"

#include <array>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

struct UnitName {
  const char* name;
  Interval::Unit unit;
  double size;
};
using Unit = Interval::Unit;
constexpr std::array<UnitName, 18> unit_names = {{{"", Unit::steps, 1},
                                                  {"st", Unit::steps, 1},
                                                  {"sts", Unit::steps, 1},
                                                  {"step", Unit::steps, 1},
                                                  {"steps", Unit::steps, 1},
                                                  {"ep", Unit::epochs, 1},
                                                  {"eps", Unit::epochs, 1},
                                                  {"epoch", Unit::epochs, 1},
                                                  {"epochs", Unit::epochs, 1},
                                                  {"eval", Unit::evaluations, 1},
                                                  {"evals", Unit::evaluations, 1},
                                                  {"evaluation", Unit::evaluations, 1},
                                                  {"evaluations", Unit::evaluations, 1},
                                                  {"s", Unit::seconds, 1},
                                                  {"m", Unit::seconds, 60},
                                                  {"h", Unit::seconds, 3600},
                                                  {"d", Unit::seconds, 86400},
                                                  {"never", Unit::never, 0}}};

// Numbers are above 0, and numbers of steps and evaluations are integers. Nine digits keep multiples within
// 64 bits.
const std::string positive = "(?![0.]+(?:[a-z]|$))";
const std::string whole = "[0-9]{1,9}";
const std::string decimal = "(?:[0-9]{1,9}(?:\\.[0-9]{1,9})?|\\.[0-9]{1,9})";
const std::string interval_pattern = "never|" + positive + "(?:" + whole + "|(?:" + whole +
                                     ")?(?:steps?|sts?|evaluations?|evals?)|(?:" + decimal +
                                     ")?(?:epochs?|eps?)|" + decimal + "[smhd])";
const std::string duration_pattern = positive + decimal + "[smhd]";

settings::Rule interval_rule() {
  return settings::matches(
      interval_pattern,
      "an interval: steps (500), epochs (epoch, 0.25ep), a time (30s, 10m, 2h), evaluations (eval) or never");
}

void require_form(const settings::Rule& rule, const std::string& text) {
  if (!rule.accepts(text)) throw ConfigError("\"{}\" is not {}", text, rule.form);
}

const UnitName& find_unit(const std::string& text) {
  const size_t begin = text.find_first_not_of("0123456789.");
  const std::string name = begin == std::string::npos ? "" : text.substr(begin);
  for (const UnitName& unit : unit_names) {
    if (name == unit.name) return unit;
  }
  throw ConfigError("\"{}\" is not an interval", text);
}

}  // namespace

Interval::Interval(std::string text) : text_(std::move(text)) { require_form(interval_rule(), text_); }

Interval::Unit Interval::unit() const { return find_unit(text_).unit; }

double Interval::count() const {
  const UnitName& unit = find_unit(text_);
  const std::string number = text_.substr(0, text_.find_first_not_of("0123456789."));
  return parse_double(number).value_or(1) * unit.size;
}

void Interval::declare(settings::Fields& field, const std::string& key, const std::string& help) {
  field(key, text_, help, interval_rule());
}

settings::Rule duration_rule() { return settings::matches(duration_pattern, "a time: 30s, 10m, 2h or 1d"); }

double parse_duration(const std::string& text) {
  require_form(duration_rule(), text);
  return Interval(text).count();
}

}  // namespace stretto
