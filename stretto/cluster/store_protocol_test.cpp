#include "stretto/cluster/store_protocol.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/cluster/store_table.h"

namespace stretto::cluster {
namespace {

std::string payload_of(const std::string& frame) { return frame.substr(frame_header_bytes); }

Request sample() {
  return {.operation = Operation::compare_set,
          .keys = {std::string("k\0ey", 4)},
          .number = -5,
          .value = "new",
          .expected = "old"};
}

TEST(StoreProtocol, RequestsAndRepliesSurviveTheWire) {
  const std::string frame = encode(sample());
  EXPECT_EQ(payload_bytes(frame), frame.size() - frame_header_bytes);
  const auto request = decode_request(payload_of(frame));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->operation, Operation::compare_set);
  EXPECT_EQ(request->keys, sample().keys);
  EXPECT_EQ(request->number, -5);
  EXPECT_EQ(request->value, "new");
  EXPECT_EQ(request->expected, "old");

  const auto reply = decode_reply(payload_of(encode(Reply{Status::refused, -1, "why"})));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, Status::refused);
  EXPECT_EQ(reply->number, -1);
  EXPECT_EQ(reply->value, "why");
}

TEST(StoreProtocol, EveryTruncationAndAnyLeftoverIsMalformed) {
  const std::string payload = payload_of(encode(sample()));
  for (size_t size = 0; size < payload.size(); ++size)
    EXPECT_FALSE(decode_request(payload.substr(0, size))) << size;
  EXPECT_FALSE(decode_request(payload + "x"));
  EXPECT_FALSE(decode_reply(payload_of(encode(Reply{})) + "x"));
}

TEST(StoreProtocol, WrongNumberOfKeysIsMalformed) {
  EXPECT_FALSE(decode_request(payload_of(encode(Request{.operation = Operation::set}))));
  EXPECT_FALSE(decode_request(payload_of(encode(Request{.operation = Operation::add, .keys = {"a", "b"}}))));
  EXPECT_FALSE(
      decode_request(payload_of(encode(Request{.operation = Operation::count_keys, .keys = {"a"}}))));
  EXPECT_TRUE(decode_request(payload_of(encode(Request{.operation = Operation::wait, .keys = {"a", "b"}}))));
}

TEST(StoreProtocol, BoundsAreKept) {
  const auto refusal = [](const Request& request) -> std::string {
    try {
      encode(request);
    } catch (const DistributedError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.keys = {std::string(max_key_bytes, 'k')}}), "");
  EXPECT_THAT(refusal({.keys = {std::string(max_key_bytes + 1, 'k')}}),
              ::testing::HasSubstr("at most 4096 fit"));
  EXPECT_THAT(refusal({.keys = {"k"}, .value = std::string(max_value_bytes + 1, 'v')}),
              ::testing::HasSubstr("a value of 16777217 bytes is too long"));
}

TEST(StoreProtocol, FuzzedPayloadsNeverCrash) {
  std::mt19937 random(20);
  const std::string good = payload_of(encode(sample()));
  StoreTable table;
  for (int i = 0; i < 20'000; ++i) {
    std::string payload = good;
    for (int edits = 0; edits < 3; ++edits) payload[random() % payload.size()] = static_cast<char>(random());
    payload.resize(random() % (payload.size() + 4));
    if (const auto request = decode_request(payload)) table.answer(*request);
    decode_reply(payload);
  }
}

TEST(StoreTable, CompareSetIsAsInTorch) {
  StoreTable table;
  const auto compare_set = [&](const std::string& expected, const std::string& desired) {
    return table
        .answer({.operation = Operation::compare_set, .keys = {"k"}, .value = desired, .expected = expected})
        ->value;
  };
  EXPECT_EQ(compare_set("wrong", "x"), "wrong");
  EXPECT_FALSE(table.answer({.operation = Operation::get, .keys = {"k"}}));
  EXPECT_EQ(compare_set("", "first"), "first");
  EXPECT_EQ(compare_set("", "x"), "first");
  EXPECT_EQ(compare_set("first", "second"), "second");
}

TEST(StoreTable, AddRefusesWhatIsNoNumber) {
  StoreTable table;
  table.answer({.operation = Operation::set, .keys = {"k"}, .value = "many"});
  const auto refused = table.answer({.operation = Operation::add, .keys = {"k"}, .number = 1});
  EXPECT_EQ(refused->status, Status::refused);
  EXPECT_EQ(refused->value, "the value is \"many\", to which 1 cannot be added");
  table.answer({.operation = Operation::set, .keys = {"k"}, .value = "9223372036854775807"});
  EXPECT_EQ(table.answer({.operation = Operation::add, .keys = {"k"}, .number = 1})->status, Status::refused);
}

}  // namespace
}  // namespace stretto::cluster
