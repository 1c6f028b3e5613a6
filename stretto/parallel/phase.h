#pragma once

// Names of the phases of a step for profilers (RECORD_USER_SCOPE). "reduce" starts a reduction inside
// backward; "wait" waits for reductions still running after backward.
namespace stretto::phase {

inline constexpr const char* data = "stretto: data";
inline constexpr const char* forward = "stretto: forward";
inline constexpr const char* backward = "stretto: backward";
inline constexpr const char* reduce = "stretto: reduce";
inline constexpr const char* wait = "stretto: wait";
inline constexpr const char* optimizer = "stretto: optimizer";

}  // namespace stretto::phase
