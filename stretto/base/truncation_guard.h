#pragma once

#include <cstddef>
#include <filesystem>

namespace stretto::truncation_guard {

// A mapped file that another process truncates cannot be read any more: the access ends the process by SIGBUS, which by
// itself names nothing. While a mapping is watched, a message on standard error names its file before the signal takes its
// course. Thread-safe.
void watch(const void* begin, size_t size, const std::filesystem::path& path);
void forget(const void* begin);

}  // namespace stretto::truncation_guard
