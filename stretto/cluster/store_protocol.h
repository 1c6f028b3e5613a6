#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::cluster {

// The wire protocol of StoreClient and StoreServer. All integers are little-endian.
//
//   server -> client   store_greeting, then a nonce of 32 bytes
//   client -> server   HMAC-SHA256(secret, nonce), 32 bytes
//   server -> client   one byte, store_accepted or store_refused; after a refusal the server closes
//   then, in turn      a request and its reply, each a frame: u32 length of the payload, payload
//
// Request payload: u8 operation, u32 number of keys, keys, i64 number, value, expected.
// Reply payload:   u8 status, i64 number, value.        A key or a value is u32 length, bytes.
inline constexpr std::string_view store_greeting = "stretto store 3\n";
inline constexpr size_t nonce_bytes = 32;
inline constexpr size_t proof_bytes = 32;
inline constexpr char store_accepted = 'A';
inline constexpr char store_refused = 'R';

inline constexpr size_t max_key_bytes = size_t{4} << 10;
inline constexpr size_t max_keys = 4096;  // of one request
inline constexpr size_t max_value_bytes = size_t{16} << 20;
// compare_set has two values, wait has many keys.
inline constexpr size_t max_payload_bytes = 2 * max_value_bytes + max_keys * (max_key_bytes + 4);

// All operations of the store; c10d::Store's other calls are composed of these.
// add_at_end: adds to the numbers under its keys when this connection ends, however it ends.
enum class Operation : uint8_t { set, get, add, wait, compare_set, remove, add_at_end };

struct Request {
  Operation operation = Operation::set;
  std::vector<std::string> keys = {};  // wait, add_at_end: up to max_keys; else one
  int64_t number = 0;                  // add, add_at_end: the summand; get, wait: milliseconds to wait
  std::string value = {};              // set, compare_set
  std::string expected = {};           // compare_set
};

// How long a request may wait: `number` of a get or a wait, within 0 .. one year; 0 for other operations.
std::chrono::milliseconds wait_time(const Request& request);

enum class Status : uint8_t { ok, timed_out, refused };

struct Reply {
  Status status = Status::ok;
  int64_t number = 0;      // add: the sum; remove: 0 or 1
  std::string value = {};  // get, compare_set; refused: the reason, as a sentence
};

// Encodes whole frames. encode() of a request throws DistributedError if it exceeds the bounds above.
std::string encode(const Request& request);
std::string encode(const Reply& reply);

// Decodes payloads without their length. Returns nullopt for a malformed one: a bound exceeded, bytes missing
// or left over, an unknown operation or status, a wrong number of keys.
std::optional<Request> decode_request(std::string_view payload);
std::optional<Reply> decode_reply(std::string_view payload);

// The length in front of a frame. REQUIRES: header.size() >= 4.
inline constexpr size_t frame_header_bytes = 4;
size_t payload_bytes(std::string_view header);

}  // namespace stretto::cluster
