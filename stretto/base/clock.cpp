#include "stretto/base/clock.h"

#include <cmath>
#include <ctime>

#include <fmt/chrono.h>

namespace stretto {
namespace {

std::string text_of(double time, std::tm* (*to_parts)(const std::time_t*, std::tm*)) {
  const auto second = static_cast<std::time_t>(std::floor(time));
  std::tm parts{};
  to_parts(&second, &parts);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

}  // namespace

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string local_time(double time) { return text_of(time, ::localtime_r); }
std::string utc_time(double time) { return text_of(time, ::gmtime_r); }

std::string log_time() {
  const double now = seconds_since_1970();
  return fmt::format("{}.{:03}", local_time(now), static_cast<int64_t>(now * 1000) % 1000);
}

}  // namespace stretto
