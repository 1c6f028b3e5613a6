#pragma once

// Names under which the phases of a step are recorded (RECORD_USER_SCOPE), for profilers. Reductions are started inside
// of backward; what is left of them when backward has ended is waited for.
namespace stretto::phase {

inline constexpr const char* data = "stretto: data";
inline constexpr const char* forward = "stretto: forward";
inline constexpr const char* backward = "stretto: backward";
inline constexpr const char* reduce = "stretto: reduce";
inline constexpr const char* wait = "stretto: wait";
inline constexpr const char* optimizer = "stretto: optimizer";

}  // namespace stretto::phase
