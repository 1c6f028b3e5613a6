#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto::tfevents {

// TensorBoard's event files: records (length, checksum, bytes, checksum) of protocol buffers, tensorboard/compat/proto/
// event.proto and summary.proto. Times are in seconds since 1970.

// `message` as a record of the file; checksums are CRC-32C, masked as in TFRecord files.
std::string as_record(std::string_view message);

// The first message of every file.
std::string version(double time);

// Marks a restart at `step`: readers discard events of earlier files from that step on.
std::string restart(double time, int64_t step);

// One point per named curve.
std::string scalars(double time, int64_t step, const std::vector<std::pair<std::string, double>>& values);

// Markdown text, shown under `tag`.
std::string text(double time, int64_t step, const std::string& tag, const std::string& markdown);

}  // namespace stretto::tfevents
