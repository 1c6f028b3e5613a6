#include "stretto/track/tfevents.h"

#include <protozero/pbf_writer.hpp>

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
enum Value { value_tag = 1, value_simple = 2, value_tensor = 8, value_metadata = 9 };
enum Metadata { metadata_plugin = 1, metadata_data_class = 4 };
enum Plugin { plugin_name = 1 };
enum Tensor { tensor_type = 1, tensor_shape = 2, tensor_string = 8 };
enum Shape { shape_dimension = 2 };
enum Dimension { dimension_size = 1 };

constexpr int32_t session_start = 1, data_class_tensor = 2, type_string = 7;

void append_little_endian(std::string& bytes, uint64_t number, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
}

uint32_t masked_checksum(std::string_view bytes) {
  const uint32_t sum = crc32c(bytes);
  return (sum >> 15 | sum << 17) + 0xa282ead8;
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
  std::string bytes;
  Writer event(bytes);
  event.add_double(event_time, time);
  event.add_int64(event_step, step);
  Writer summary(event, event_summary);
  Writer value(summary, summary_value);
  value.add_string(value_tag, tag + "/text_summary");
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
  return bytes;
}

}  // namespace stretto::tfevents
