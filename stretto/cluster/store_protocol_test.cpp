#include "stretto/cluster/store_protocol.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
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

TEST(StoreProtocol, RequestsAndRepliesAreReadAsTheyWereWritten) {
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
              ::testing::HasSubstr("a value of length 16777217 is too long"));
}

TEST(StoreProtocol, OnlyTheSevenOperationsAreKnown) {
  std::string payload = payload_of(encode(Request{.operation = Operation::add_at_end, .keys = {"k"}}));
  EXPECT_TRUE(decode_request(payload));
  for (int operation = 7; operation < 256; ++operation) {
    payload[0] = static_cast<char>(operation);
    EXPECT_FALSE(decode_request(payload)) << operation;
  }
}

TEST(StoreProtocol, AListOfManyKeysIsMalformed) {
  Request request{.operation = Operation::wait, .keys = std::vector<std::string>(max_keys)};
  std::string payload = payload_of(encode(request));
  EXPECT_TRUE(decode_request(payload));
  // announces 256 more keys, which the payload does not contain
  payload[2] = static_cast<char>(payload[2] + 1);
  EXPECT_FALSE(decode_request(payload));
  request.keys.emplace_back();
  EXPECT_THROW(encode(request), DistributedError);
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

TEST(StoreTable, CompareSetEqualsTorchs) {
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

TEST(StoreTable, IsBounded) {
  StoreTable table({.keys = 3, .bytes = 100});
  const auto set = [&](const std::string& key, size_t bytes) {
    return table.answer({.operation = Operation::set, .keys = {key}, .value = std::string(bytes, 'v')})
        .value();
  };
  EXPECT_EQ(set("a", 60).status, Status::ok);
  EXPECT_EQ(set("b", 30).status, Status::ok);
  EXPECT_THAT(set("c", 30).value, has_all("the store is full", "92 bytes", "31 more"));
  EXPECT_EQ(set("b", 99).status, Status::refused);
  EXPECT_EQ(set("a", 10).status, Status::ok) << "a smaller value in the place of a larger one fits";
  EXPECT_EQ(set("c", 30).status, Status::ok);
  EXPECT_THAT(table.answer({.operation = Operation::add, .keys = {"d"}, .number = 1})->value,
              ::testing::HasSubstr("the store is full: it holds 3 keys"));
  EXPECT_EQ(table.answer({.operation = Operation::compare_set, .keys = {"d"}, .value = "v"})->status,
            Status::refused);
  EXPECT_EQ(table.answer({.operation = Operation::remove, .keys = {"a"}})->number, 1);
  EXPECT_EQ(table.answer({.operation = Operation::add, .keys = {"d"}, .number = 1})->number, 1);
  EXPECT_EQ(table.answer({.operation = Operation::get, .keys = {"b"}})->value, std::string(30, 'v'));
}

TEST(StoreTable, AddRefusesOtherValuesThanNumbers) {
  StoreTable table;
  table.answer({.operation = Operation::set, .keys = {"k"}, .value = "many"});
  const auto refused = table.answer({.operation = Operation::add, .keys = {"k"}, .number = 1});
  EXPECT_EQ(refused->status, Status::refused);
  EXPECT_THAT(refused->value, has_all("\"many\"", "1 cannot be added"));
  table.answer({.operation = Operation::set, .keys = {"k"}, .value = "9223372036854775807"});
  EXPECT_EQ(table.answer({.operation = Operation::add, .keys = {"k"}, .number = 1})->status, Status::refused);
}

}  // namespace
}  // namespace stretto::cluster
