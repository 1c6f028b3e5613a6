#include "stretto/track/metrics_log.h"

#include <cmath>

#include <fmt/format.h>

namespace stretto {

void MetricsLog::write(nlohmann::ordered_json record) {
  for (auto& item : record.items()) {
    if (item.value().is_number_float() && !std::isfinite(item.value().get<double>())) {
      item.value() = fmt::format("{}", item.value().get<double>());
    }
  }
  file_.write(record.dump() + "\n");
}

}  // namespace stretto
