#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/track/tracker.h"

namespace stretto::tfevents {

// The format of TensorBoard's event files: records (length, checksum, bytes, checksum) of protocol buffers,
// tensorboard/compat/proto/event.proto and summary.proto. Times are in seconds since 1970.

// Formats `message` as a record of the file; checksums are CRC-32C, masked as in TFRecord files.
std::string as_record(std::string_view message);

// The first message of every file.
std::string version(double time);

// Marks a restart at `step`: readers discard events of earlier files from that step on.
std::string restart(double time, int64_t step);

// A message with one point per named curve.
std::string scalars(double time, int64_t step, const std::vector<std::pair<std::string, double>>& values);

// A message with Markdown text, shown under `tag`.
std::string text(double time, int64_t step, const std::string& tag, const std::string& markdown);

std::string histogram(double time, int64_t step, const std::string& tag, const Histogram& histogram);

// Throws IoError unless it is a PNG file.
std::string image(double time, int64_t step, const std::string& tag, const Image& image);

// The hyperparameters of a run for the page HPARAMS: numbers, flags and texts by name. `metrics`: the curves
// shown with them.
std::string hparams(double time, const nlohmann::json& parameters, const std::vector<std::string>& metrics);
std::string hparams_start(double time, const nlohmann::json& parameters);
std::string hparams_end(double time, bool success);

}  // namespace stretto::tfevents
