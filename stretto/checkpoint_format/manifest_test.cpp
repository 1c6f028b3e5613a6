#include "stretto/checkpoint_format/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/message_support.h"

namespace stretto::checkpoint_format {
namespace {

using ::testing::HasSubstr;

// A 2 x 3 tensor whose rows lie in two files, and an empty one.
Manifest example() {
  Manifest manifest;
  manifest.step = 7;
  manifest.world_size = 2;
  manifest.score = Score{"accuracy", 0.75, true};
  manifest.files = {{"rank-00000.safetensors", {.size = 24, .header_length = 12, .header_checksum = 5}},
                    {"rank-00001.safetensors", {.size = 20, .header_length = 8, .header_checksum = 6}}};
  manifest.tensors["w"] = {"F32",
                           {2, 3},
                           {{{{0, 0}, {1, 3}, 0, 3}, "rank-00000.safetensors", 12, 12, 1},
                            {{{1, 0}, {1, 3}, 0, 3}, "rank-00001.safetensors", 8, 12, ~0ULL}}};
  manifest.tensors["none"] = {"I64", {0}, {}};
  manifest.scalars["place"] = {{"epoch", 3}};
  return manifest;
}

// `text` with its checksum recomputed.
std::string sealed(std::string text) {
  const size_t tail = std::string(",\"checksum\":\"0123456789abcdef\"}\n").size();
  text.resize(text.size() - tail);
  return fmt::format("{},\"checksum\":\"{:016x}\"}}\n", text, hash64(text));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    require_complete(parse_manifest(text, "m.json"), "m.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Manifest, IsReadAsItWasWritten) {
  const std::string text = to_text(example());
  const Manifest manifest = parse_manifest(text, "m.json");
  EXPECT_EQ(to_text(manifest), text);
  EXPECT_EQ(manifest.tensors.at("w").pieces[1].region, example().tensors.at("w").pieces[1].region);
  EXPECT_EQ(manifest.tensors.at("w").pieces[1].checksum, ~0ULL);
  EXPECT_EQ(manifest.score->metric, "accuracy");
  EXPECT_EQ(manifest.scalars["place"]["epoch"], 3);
  require_complete(manifest, "m.json");
}

TEST(Manifest, EveryFlippedBitIsFound) {
  const std::string text = to_text(example());
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THAT(refusal(damaged), ::testing::StartsWith("m.json")) << "bit " << bit;
  }
}

TEST(Manifest, EveryTruncationIsFound) {
  const std::string text = to_text(example());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(refusal(text.substr(0, size)), ::testing::StartsWith("m.json")) << size;
  }
}

TEST(Manifest, AnEditWithoutItsChecksumIsFound) {
  EXPECT_THAT(refusal(replaced(to_text(example()), "\"step\":7", "\"step\":8")),
              has_all("m.json:", "damaged or edited"));
}

TEST(Manifest, ANewerFormatIsRefused) {
  EXPECT_THAT(refusal(sealed(replaced(to_text(example()), "\"format_version\":1", "\"format_version\":2"))),
              has_all("m.json:", "format 2", "newer than 1", "newer version"));
}

// Manifests that an attacker or a faulty program could write, with valid checksums.
TEST(Manifest, ContradictionsAreRefused) {
  const std::string text = to_text(example());
  const auto with = [&](const std::string& from, const std::string& to) {
    return refusal(sealed(replaced(text, from, to)));
  };
  EXPECT_THAT(with("\"bytes\":[12,24]", "\"bytes\":[12,25]"),
              has_all("m.json: tensor w:", "12 to 25", "rank-00000.safetensors"));
  EXPECT_THAT(with("\"bytes\":[12,24]", "\"bytes\":[16,28]"), has_all("m.json: tensor w:", "16 to 28"));
  EXPECT_THAT(with("\"bytes\":[12,24]", "\"bytes\":[4,16]"), has_all("m.json: tensor w:", "4 to 16"));
  EXPECT_THAT(with("\"flat\":[0,3]", "\"flat\":[0,4]"),
              has_all("m.json: tensor w:", "elements 0 to 4", "[1, 3]"));
  EXPECT_THAT(with("\"flat\":[0,3]", "\"flat\":[-1,2]"),
              has_all("m.json: tensor w:", "\"flat\" is -1", "from 0"));
  EXPECT_THAT(with("\"offset\":[1,0]", "\"offset\":[2,0]"),
              has_all("m.json: tensor w:", "outside", "[2, 3]"));
  EXPECT_THAT(with("\"shape\":[2,3]", "\"shape\":[2,4]"),
              has_all("m.json: tensor w", "[2, 4]", "[0, 3]", "none of its 2 pieces"));
  EXPECT_THAT(with("\"shape\":[2,3]", "\"shape\":[4611686018427387904,4]"),
              has_all("m.json: tensor w:", "shape", "[4611686018427387904, 4]"));
  EXPECT_THAT(with("\"size\":24", "\"size\":25"), has_all("m.json: rank-00000.safetensors:", "from 24 on"));
  EXPECT_THAT(with("\"offset\":[1,0]", "\"offset\":[0,0]"),
              has_all("m.json: tensor w", "[0, 0]", "2 of its pieces",
                      "rank-00000.safetensors, rank-00001.safetensors"));
  EXPECT_THAT(with("\"dtype\":\"F32\"", "\"dtype\":\"F31\""), has_all("m.json: tensor w:", "\"F31\""));
  EXPECT_THAT(with("\"rank-00001.safetensors\":{", "\"../rank-1.safetensors\":{"),
              has_all("m.json:", "\"../rank-1.safetensors\""));
  EXPECT_THAT(with("\"step\":7", "\"step\":\"x\""), has_all("m.json:", "\"step\" is \"x\"", "whole number"));
  EXPECT_THAT(with("\"dtype\":\"F32\",", ""), HasSubstr("m.json: tensor w: it lacks \"dtype\""));
  EXPECT_THAT(with("\"flat\":[0,3]", "\"flat\":[0]"), has_all("m.json: tensor w:", "\"flat\" is [0]"));
  EXPECT_THAT(with("\"tensors\":{", "\"tensor\":{"), HasSubstr("m.json: it lacks \"tensors\""));
}

// Numbers that would overflow, wrap around or point outside of the data.
TEST(Manifest, ImpossibleNumbersAreRefused) {
  const std::string text = to_text(example());
  const auto with = [&](const std::string& from, const std::string& to) {
    return refusal(sealed(replaced(text, from, to)));
  };
  constexpr const char* largest = "9223372036854775807";
  EXPECT_THAT(with("\"format_version\":1", "\"format_version\":2147483648"),
              has_all("2147483648", "newer than 1"));
  EXPECT_THAT(with("\"format_version\":1", "\"format_version\":0"), HasSubstr("\"format_version\" is 0"));
  EXPECT_THAT(with("\"step\":7", "\"step\":-7"), HasSubstr("\"step\" is -7"));
  EXPECT_THAT(with("\"step\":7", "\"step\":1e300"), HasSubstr("\"step\" is 1e+300"));
  EXPECT_THAT(with("\"step\":7", "\"step\":18446744073709551615"),
              HasSubstr("\"step\" is 18446744073709551615"));
  EXPECT_THAT(with("\"world_size\":2", "\"world_size\":4294967298"),
              HasSubstr("\"world_size\" is 4294967298"));
  EXPECT_THAT(with("\"bytes\":[12,24]", "\"bytes\":[-9223372036854775808,24]"),
              HasSubstr("\"bytes\" is -922"));
  EXPECT_THAT(with("\"bytes\":[12,24]", fmt::format("\"bytes\":[12,{}]", largest)),
              has_all("m.json: tensor w:", fmt::format("12 to {}", largest)));
  EXPECT_THAT(with("\"size\":24", "\"size\":-24"), HasSubstr("\"size\" is -24"));
  EXPECT_THAT(with("\"header_bytes\":12", "\"header_bytes\":25"), HasSubstr("\"header_bytes\" is 25"));
  EXPECT_THAT(with("\"shape\":[2,3]", fmt::format("\"shape\":[{},3]", largest)),
              has_all("m.json: tensor w:", "shape", fmt::format("[{}, 3]", largest)));
  EXPECT_THAT(with("\"epoch\":3}", fmt::format("\"samples\":{}}},\"data\":{{\"samples\":9}}", largest)),
              has_all("\"place.samples\" is 9223372036854775807", "from 0 to 9"));
  EXPECT_THAT(with("\"scalars\":{", "\"scalars\":[],\"other\":{"),
              HasSubstr("\"scalars\" is a JSON array; expected an object"));
}

// Two tensors share some bytes, and other bytes belong to none, so that the total is correct.
TEST(Manifest, SharedBytesAreRefused) {
  Manifest manifest = example();
  manifest.files["rank-00000.safetensors"].size = 48;
  manifest.tensors["v"] = {"F32", {2, 3}, {{whole_region({2, 3}), "rank-00000.safetensors", 16, 24, 2}}};
  EXPECT_THAT(refusal(to_text(manifest)),
              has_all("m.json: rank-00000.safetensors:", "16 to 24", "tensor w", "tensor v"));
}

}  // namespace
}  // namespace stretto::checkpoint_format
