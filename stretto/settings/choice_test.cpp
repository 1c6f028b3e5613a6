#include "stretto/settings/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/settings/check_settings.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/read.h"
#include "stretto/settings/yaml.h"

namespace stretto::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Square {
  double side = 1;
  std::string color = "red";
  void fields(Fields& field) {
    field("side", side, "length of a side", at_least(0));
    field("color", color, "of all of it", one_of({"red", "blue"}));
  }
  bool operator==(const Square&) const = default;
};

struct Box {
  double side = 2;
  double height = 3;
  void fields(Fields& field) {
    field("side", side, "length of the sides below", above(0).at_most(10));
    field("height", height, "length of the others", above(0));
  }
  void check() const {
    if (height < side) throw ConfigError("height {} is below side {}", height, side);
  }
  bool operator==(const Box&) const = default;
};

struct Drawing {
  Choice shape = Choice({{"square", "flat", Settings(Square{})}, {"box", "not flat", Settings(Box{})}},
                        "square", "what is drawn");
  void fields(Fields& field) { field("shape", shape, "the shape"); }
};

// A struct that is not the settings of any kind.
struct Other {
  void fields(Fields&) {}
  bool operator==(const Other&) const = default;
};

Drawing read_drawing(const std::string& yaml) {
  Drawing drawing;
  read_fields(fields_of(drawing), parse_yaml(yaml, "d.yaml"));
  return drawing;
}

TEST(Choice, HasTheSettingsOfItsType) {
  EXPECT_EQ(read_drawing("shape: {side: 4}").shape.as<Square>(), (Square{.side = 4}));
  const Drawing drawing = read_drawing("shape: {side: 5, height: 7, type: box}");
  EXPECT_EQ(drawing.shape.as<Box>(), (Box{.side = 5, .height = 7}));
  EXPECT_THROW(drawing.shape.as<Square>(), ConfigError);
  EXPECT_FALSE(drawing.shape == read_drawing("shape: {type: box}").shape);
}

TEST(Choice, RefusesTheSettingsOfOtherTypes) {
  const auto refuses = [](const std::string& yaml, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { read_drawing(yaml); }), has_all(named...));
  };
  refuses("shape:\n  type: box\n  color: red\n", "d.yaml:3:10: shape.color does not apply", "shape.type: box",
          "only with square");
  refuses("shape: {height: 3}", "shape.height does not apply", "shape.type: square", "only with box");
  refuses("shape: {type: sqare}", "\"sqare\"", "one of square, box", "did you mean \"square\"?");
  refuses("shape: {type: box, side: 11}", "shape.side: 11 is out of range", "above 0 and at most 10");
  refuses("shape: {sides: 1}", "shape.sides is not a setting; did you mean \"side\"?");
}

TEST(Choice, IsSetByPrograms) {
  Drawing drawing;
  drawing.shape.choose(Box{.side = 4});
  EXPECT_EQ(drawing.shape.type, "box");
  EXPECT_THAT(message_of<ConfigError>([&] { drawing.shape.check(); }), "height 3 is below side 4");
  drawing.shape.as<Box>().side = 20;
  EXPECT_THAT(message_of<SettingError>([&] { drawing.shape.check(); }),
              has_all("side: 20 is out of range", "above 0 and at most 10"));
  Drawing copy = drawing;
  copy.shape.as<Box>() = Box{};
  copy.shape.check();
  EXPECT_EQ(drawing.shape.as<Box>().side, 20);
  EXPECT_THROW(copy.shape.choose(Other{}), ConfigError);
  copy.shape.type = "bax";
  EXPECT_THAT(message_of<ConfigError>([&] { copy.shape.check(); }), HasSubstr("did you mean \"box\"?"));
}

TEST(Choice, IsWrittenAsItIsRead) {
  Drawing drawing = read_drawing("shape: {type: box, side: 2.5}");
  const std::string yaml = to_yaml(fields_of(drawing));
  EXPECT_EQ(yaml, "shape:\n  type: box\n  side: 2.5\n  height: 3.0\n");
  EXPECT_TRUE(read_drawing(yaml).shape == drawing.shape);
}

TEST(Choice, IsDescribedByType) {
  Drawing drawing;
  const std::string help = to_help(fields_of(drawing));
  EXPECT_THAT(help, HasSubstr("shape.type\n"));
  EXPECT_THAT(help, HasSubstr("\n with shape.type: box\n  shape.side\n      length of the sides below"));
  EXPECT_THAT(help, HasSubstr("length of the others (number, above 0; default 3.0)"));
  EXPECT_THAT(to_help(fields_of(drawing), "shape.height"),
              HasSubstr("above 0; only with type box; default 3.0"));
  const auto schema = to_schema(fields_of(drawing), "drawing");
  std::vector<std::string> keys;
  for (const auto& [key, value] : schema["properties"]["shape"]["properties"].items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("type", "side", "color", "height"));
}

}  // namespace
}  // namespace stretto::settings
