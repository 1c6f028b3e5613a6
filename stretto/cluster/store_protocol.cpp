#include "stretto/cluster/store_protocol.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::cluster {
namespace {

void put(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void put_text(std::string& out, std::string_view text) {
  put(out, text.size(), 4);
  out.append(text);
}

std::string framed(const std::string& payload) {
  std::string frame;
  frame.reserve(frame_header_bytes + payload.size());
  put_text(frame, payload);
  return frame;
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

// Reads the fields of a payload in order. After the first one that does not fit, all fail.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : left_(bytes) {}

  uint64_t integer(size_t bytes) { return little_endian(take(bytes)); }
  std::string text(size_t limit) {
    const size_t size = integer(4);
    if (size > limit) good_ = false;
    return std::string(take(good_ ? size : 0));
  }
  bool good() const { return good_; }
  bool complete() const { return good_ && left_.empty(); }

 private:
  std::string_view take(size_t bytes) {
    if (bytes > left_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }

  std::string_view left_;
  bool good_ = true;
};

bool right_number_of_keys(const Request& request) {
  switch (request.operation) {
    case Operation::wait:
    case Operation::add_at_end:
      return true;
    default:
      return request.keys.size() == 1;
  }
}

void check_size(const char* what, size_t size, size_t limit) {
  if (size > limit)
    throw DistributedError("store: {} of length {} is too long; at most {} fit", what, size, limit);
}

}  // namespace

std::chrono::milliseconds wait_time(const Request& request) {
  constexpr int64_t year = int64_t{1000} * 3600 * 24 * 365;
  const bool waits = request.operation == Operation::get || request.operation == Operation::wait;
  return std::chrono::milliseconds(waits ? std::clamp<int64_t>(request.number, 0, year) : 0);
}

std::string encode(const Request& request) {
  std::string payload;
  put(payload, static_cast<uint8_t>(request.operation), 1);
  check_size("a list of keys", request.keys.size(), max_keys);
  put(payload, request.keys.size(), 4);
  for (const std::string& key : request.keys) {
    check_size("a key", key.size(), max_key_bytes);
    put_text(payload, key);
  }
  put(payload, static_cast<uint64_t>(request.number), 8);
  for (const std::string* value : {&request.value, &request.expected}) {
    check_size("a value", value->size(), max_value_bytes);
    put_text(payload, *value);
  }
  check_size("a request", payload.size(), max_payload_bytes);
  return framed(payload);
}

std::string encode(const Reply& reply) {
  std::string payload;
  put(payload, static_cast<uint8_t>(reply.status), 1);
  put(payload, static_cast<uint64_t>(reply.number), 8);
  put_text(payload, reply.value);
  return framed(payload);
}

std::optional<Request> decode_request(std::string_view payload) {
  Fields fields(payload);
  Request request;
  const uint64_t operation = fields.integer(1);
  if (operation > static_cast<uint8_t>(Operation::add_at_end)) return std::nullopt;
  request.operation = static_cast<Operation>(operation);
  const uint64_t keys = fields.integer(4);
  if (keys > max_keys) return std::nullopt;
  for (uint64_t i = 0; i < keys && fields.good(); ++i) request.keys.push_back(fields.text(max_key_bytes));
  request.number = static_cast<int64_t>(fields.integer(8));
  request.value = fields.text(max_value_bytes);
  request.expected = fields.text(max_value_bytes);
  if (!fields.complete() || !right_number_of_keys(request)) return std::nullopt;
  return request;
}

std::optional<Reply> decode_reply(std::string_view payload) {
  Fields fields(payload);
  Reply reply;
  const uint64_t status = fields.integer(1);
  if (status > static_cast<uint8_t>(Status::refused)) return std::nullopt;
  reply.status = static_cast<Status>(status);
  reply.number = static_cast<int64_t>(fields.integer(8));
  reply.value = fields.text(max_value_bytes);
  if (!fields.complete()) return std::nullopt;
  return reply;
}

size_t payload_bytes(std::string_view header) { return little_endian(header.substr(0, frame_header_bytes)); }

}  // namespace stretto::cluster
