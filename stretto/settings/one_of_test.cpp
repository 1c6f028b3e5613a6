#include "stretto/settings/one_of.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/read.h"
#include "stretto/settings/yaml.h"

namespace stretto::settings {
namespace {

using ::testing::HasSubstr;

enum class Shape { automatic, round, flat };
constexpr auto names_of(Shape) { return std::to_array<std::string_view>({"auto", "round", "flat"}); }

struct Plate {
  OneOf<Shape> shape = Shape::automatic;
  std::optional<OneOf<Shape>> lid = std::nullopt;

  void fields(Fields& field) {
    field("shape", shape, "its shape", Rule{}.or_spelled({{"disc", "round"}}));
    field("lid", lid, "shape of its lid");
  }
  bool operator==(const Plate&) const = default;
};

// The struct with texts instead, whose YAML, help and schema must be equal.
struct TextPlate {
  std::string shape = "auto";
  std::optional<std::string> lid = std::nullopt;

  void fields(Fields& field) {
    const std::vector<std::string> names = {"auto", "round", "flat"};
    field("shape", shape, "its shape", one_of(names).or_spelled({{"disc", "round"}}));
    field("lid", lid, "shape of its lid", one_of(names));
  }
};

template <class T>
T read(const std::string& yaml) {
  T plate;
  read_fields(fields_of(plate), parse_yaml(yaml, "r.yaml"));
  return plate;
}

TEST(OneOf, IsAnEnumInCodeAndANameForPrograms) {
  Plate plate;
  plate.shape = "flat";
  EXPECT_TRUE(plate.shape == Shape::flat);
  EXPECT_TRUE(plate.shape == "flat");
  const std::string name = "round";
  plate.shape = name;
  plate.lid = Shape::flat;
  EXPECT_TRUE(plate.shape == Shape::round && plate.lid == Shape::flat && plate.lid != Shape::round);
  const std::string text = plate.shape;
  EXPECT_EQ(fmt::format("{} {}", text, plate.shape), "round round");
  EXPECT_THAT(message_of<ConfigError>([&] { plate.shape = "roudn"; }),
              has_all("\"roudn\"", "auto, round, flat", "did you mean \"round\"?"));
}

TEST(OneOf, IsReadByItsNames) {
  EXPECT_EQ(read<Plate>("shape: disc\nlid: flat\n"), (Plate{.shape = Shape::round, .lid = Shape::flat}));
  EXPECT_EQ(read<Plate>("lid: null\n"), Plate());
  EXPECT_THAT(message_of<ConfigError>([] { read<Plate>("shape: round\nlid: flta\n"); }),
              has_all("r.yaml:2:6: lid: \"flta\"", "auto, round, flat", "did you mean \"flat\"?"));
  EXPECT_THAT(message_of<ConfigError>([] { read<Plate>("shape: null\n"); }), HasSubstr("shape has no value"));
}

TEST(OneOf, IsDescribedAsATextWithTheseChoices) {
  for (const char* yaml : {"shape: flat\n", "shape: auto\nlid: round\n"}) {
    auto plate = read<Plate>(yaml);
    auto text = read<TextPlate>(yaml);
    const auto fields = fields_of(plate), of_text = fields_of(text);
    EXPECT_EQ(to_yaml(fields), yaml);
    EXPECT_EQ(to_help(fields), to_help(of_text));
    EXPECT_EQ(to_schema(fields, "plate"), to_schema(of_text, "plate"));
  }
}

}  // namespace
}  // namespace stretto::settings
