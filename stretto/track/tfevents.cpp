#include "stretto/track/tfevents.h"

#include <protozero/pbf_writer.hpp>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto::tfevents {
namespace {

using Writer = protozero::pbf_writer;

// Field numbers of the .proto files.
enum Event {
  event_time = 1,
  event_step = 2,
  event_file_version = 3,
  event_summary = 5,
  event_session_log = 7
};
enum SessionLog { session_status = 1 };
enum Summary { summary_value = 1 };
enum Value {
  value_tag = 1,
  value_simple = 2,
  value_image = 4,
  value_histogram = 5,
  value_tensor = 8,
  value_metadata = 9
};
enum Metadata { metadata_plugin = 1, metadata_data_class = 4 };
enum Plugin { plugin_name = 1, plugin_content = 2 };
enum HistogramField {
  histogram_min = 1,
  histogram_max = 2,
  histogram_count = 3,
  histogram_sum = 4,
  histogram_sum_squares = 5,
  histogram_limits = 6,
  histogram_counts = 7
};
enum ImageField { image_height = 1, image_width = 2, image_colorspace = 3, image_bytes = 4 };
enum Hparams { hparams_experiment = 2, hparams_session_start = 3, hparams_session_end = 4 };
enum Experiment { experiment_time = 3, experiment_hparams = 4, experiment_metrics = 5 };
enum HparamInfo { info_name = 1, info_type = 4 };
enum MetricInfo { metric_name = 1 };
enum MetricName { metric_tag = 2 };
enum SessionStart { start_hparams = 1, start_time = 5 };
enum SessionEnd { end_status = 1, end_time = 2 };
enum MapEntry { map_key = 1, map_value = 2 };
enum JsonValue { json_number = 2, json_string = 3, json_bool = 4 };
enum Tensor { tensor_type = 1, tensor_shape = 2, tensor_string = 8 };
enum Shape { shape_dimension = 2 };
enum Dimension { dimension_size = 1 };

constexpr int32_t session_start = 1, data_class_tensor = 2, type_string = 7;
constexpr int32_t hparam_string = 1, hparam_bool = 2, hparam_number = 3, status_success = 1,
                  status_failure = 2;

void append_little_endian(std::string& bytes, uint64_t number, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
}

uint32_t masked_checksum(std::string_view bytes) {
  const uint32_t sum = crc32c(bytes);
  return (sum >> 15 | sum << 17) + 0xa282ead8;
}

// An event with one summary value, which `fill` completes.
template <class Fill>
std::string summary_event(double time, int64_t step, const std::string& tag, const Fill& fill) {
  std::string bytes;
  Writer event(bytes);
  event.add_double(event_time, time);
  if (step != 0) event.add_int64(event_step, step);
  Writer summary(event, event_summary);
  Writer value(summary, summary_value);
  value.add_string(value_tag, tag);
  fill(value);
  return bytes;
}

std::string hparams_event(double time, const std::string& tag, int field, const std::string& message) {
  std::string data;
  Writer(data).add_message(static_cast<uint32_t>(field), message);
  return summary_event(time, 0, tag, [&](Writer& value) {
    Writer metadata(value, value_metadata);
    Writer plugin(metadata, metadata_plugin);
    plugin.add_string(plugin_name, "hparams");
    plugin.add_bytes(plugin_content, data);
  });
}

int32_t hparam_type(const nlohmann::json& value) {
  if (value.is_boolean()) return hparam_bool;
  return value.is_number() ? hparam_number : hparam_string;
}

}  // namespace

std::string as_record(std::string_view message) {
  std::string record;
  append_little_endian(record, message.size(), 8);
  append_little_endian(record, masked_checksum(record), 4);
  record += message;
  append_little_endian(record, masked_checksum(message), 4);
  return record;
}

std::string version(double time) {
  std::string bytes;
  Writer event(bytes);
  event.add_double(event_time, time);
  event.add_string(event_file_version, "brain.Event:2");
  return bytes;
}

std::string restart(double time, int64_t step) {
  std::string bytes;
  Writer event(bytes);
  event.add_double(event_time, time);
  event.add_int64(event_step, step);
  Writer(event, event_session_log).add_enum(session_status, session_start);
  return bytes;
}

std::string scalars(double time, int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string bytes;
  Writer event(bytes);
  event.add_double(event_time, time);
  event.add_int64(event_step, step);
  Writer summary(event, event_summary);
  for (const auto& [tag, number] : values) {
    Writer value(summary, summary_value);
    value.add_string(value_tag, tag);
    value.add_float(value_simple, static_cast<float>(number));
  }
  return bytes;
}

std::string text(double time, int64_t step, const std::string& tag, const std::string& markdown) {
  return summary_event(time, step, tag + "/text_summary", [&](Writer& value) {
    {
      Writer tensor(value, value_tensor);
      tensor.add_enum(tensor_type, type_string);
      {
        Writer shape(tensor, tensor_shape);
        Writer(shape, shape_dimension).add_int64(dimension_size, 1);
      }
      tensor.add_string(tensor_string, markdown);
    }
    Writer metadata(value, value_metadata);
    Writer(metadata, metadata_plugin).add_string(plugin_name, "text");
    metadata.add_enum(metadata_data_class, data_class_tensor);
  });
}

std::string histogram(double time, int64_t step, const std::string& tag, const Histogram& values) {
  return summary_event(time, step, tag, [&](Writer& value) {
    Writer histogram(value, value_histogram);
    histogram.add_double(histogram_min, values.min);
    histogram.add_double(histogram_max, values.max);
    histogram.add_double(histogram_count, values.count);
    histogram.add_double(histogram_sum, values.sum);
    histogram.add_double(histogram_sum_squares, values.sum_of_squares);
    histogram.add_packed_double(histogram_limits, values.limits.begin(), values.limits.end());
    histogram.add_packed_double(histogram_counts, values.counts.begin(), values.counts.end());
  });
}

std::string image(double time, int64_t step, const std::string& tag, const Image& image) {
  const std::string& png = image.png;
  // The signature, then the chunk IHDR: width, height, bit depth, colour type (ISO/IEC 15948).
  constexpr std::string_view begin("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16);
  constexpr size_t width = 16, height = 20, colors = 25;
  if (!png.starts_with(begin) || png.size() <= colors)
    throw IoError("image {}: its bytes are not those of a PNG file", tag);
  const auto number = [&](size_t at) {
    int32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(png[at + i]);
    return value;
  };
  const int type = static_cast<unsigned char>(png[colors]);
  const int channels = ((type & 2) != 0 ? 3 : 1) + ((type & 4) != 0 ? 1 : 0);
  return summary_event(time, step, tag, [&](Writer& value) {
    Writer field(value, value_image);
    field.add_int32(image_height, number(height));
    field.add_int32(image_width, number(width));
    field.add_int32(image_colorspace, channels);
    field.add_bytes(image_bytes, png);
  });
}

std::string hparams(double time, const nlohmann::json& parameters, const std::vector<std::string>& metrics) {
  std::string bytes;
  {
    Writer experiment(bytes);
    experiment.add_double(experiment_time, time);
    for (const auto& [name, value] : parameters.items()) {
      if (value.is_null()) continue;
      Writer info(experiment, experiment_hparams);
      info.add_string(info_name, name);
      info.add_enum(info_type, hparam_type(value));
    }
    for (const std::string& metric : metrics) {
      Writer info(experiment, experiment_metrics);
      Writer(info, metric_name).add_string(metric_tag, metric);
    }
  }
  return hparams_event(time, "_hparams_/experiment", hparams_experiment, bytes);
}

std::string hparams_start(double time, const nlohmann::json& parameters) {
  std::string bytes;
  {
    Writer session(bytes);
    for (const auto& [name, value] : parameters.items()) {
      if (value.is_null()) continue;
      Writer entry(session, start_hparams);
      entry.add_string(map_key, name);
      Writer held(entry, map_value);
      if (value.is_boolean()) {
        held.add_bool(json_bool, value.get<bool>());
      } else if (value.is_number()) {
        held.add_double(json_number, value.get<double>());
      } else {
        held.add_string(json_string, value.is_string() ? value.get<std::string>() : value.dump());
      }
    }
    session.add_double(start_time, time);
  }
  return hparams_event(time, "_hparams_/session_start_info", hparams_session_start, bytes);
}

std::string hparams_end(double time, bool success) {
  std::string bytes;
  Writer session(bytes);
  session.add_enum(end_status, success ? status_success : status_failure);
  session.add_double(end_time, time);
  return hparams_event(time, "_hparams_/session_end_info", hparams_session_end, bytes);
}

}  // namespace stretto::tfevents
