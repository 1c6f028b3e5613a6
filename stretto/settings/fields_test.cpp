#include "stretto/settings/fields.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/read.h"
#include "stretto/settings/scoped_variable_support.h"
#include "stretto/settings/variables.h"
#include "stretto/settings/yaml.h"
#include "stretto/settings/yaml_override.h"

namespace stretto::settings {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// One setting of every type.
struct Inner {
  std::string type = "a";
  double only_a = 0;

  void fields(Fields& field) {
    field("type", type, "kind of inner", one_of({"a", "beta"}));
    field("only_a", only_a, "for a", at_least(0).used_with("type", type, {"a"}));
  }
  bool operator==(const Inner&) const = default;
};

struct Everything {
  bool flag = false;
  int64_t count = 1;
  double ratio = 0.5;
  std::string name = "x";
  std::filesystem::path folder = "here";
  std::optional<bool> maybe_flag;
  std::optional<int64_t> maybe_count;
  std::optional<double> maybe_ratio;
  std::optional<std::string> maybe_name;
  std::optional<std::filesystem::path> maybe_folder;
  std::vector<std::string> names;
  std::vector<int64_t> counts;
  std::vector<double> ratios;
  std::array<double, 2> pair = {0.9, 0.999};
  Inner inner;

  void fields(Fields& field) {
    field("flag", flag, "a flag");
    field("count", count, "a count", at_least(1).at_most(10));
    field("ratio", ratio, "a ratio", above(0).below(1));
    field("name", name, "a name");
    field("folder", folder, "a folder");
    field("maybe_flag", maybe_flag, "perhaps a flag");
    field("maybe_count", maybe_count, "perhaps a count");
    field("maybe_ratio", maybe_ratio, "perhaps a ratio");
    field("maybe_name", maybe_name, "perhaps a name");
    field("maybe_folder", maybe_folder, "perhaps a folder");
    field("names", names, "names");
    field("counts", counts, "counts");
    field("ratios", ratios, "ratios");
    field("pair", pair, "two numbers", at_least(0).below(1));
    field("inner", inner, "a section");
  }
  bool operator==(const Everything&) const = default;
};

Everything read(const std::string& yaml) {
  Everything result;
  read_fields(fields_of(result), parse_yaml(yaml, "r.yaml"));
  return result;
}

TEST(Fields, EveryKindIsRead) {
  const ScopedVariable home("HOME", "/home/user");
  const Everything result = read(
      "flag: yes\ncount: 7\nratio: 5e-5\nname: on\nfolder: ~/data\n"
      "maybe_flag: Off\nmaybe_count: 9007199254740993\nmaybe_ratio: 1\nmaybe_name: \"\\u00e9\"\nmaybe_folder: a b\n"
      "names: [a, 'b, c']\ncounts: [1, -2]\nratios: []\npair: [1e-4, .5]\ninner: {type: beta}\n");
  EXPECT_EQ(result, (Everything{.flag = true,
                                .count = 7,
                                .ratio = 5e-5,
                                .name = "on",
                                .folder = "/home/user/data",
                                .maybe_flag = false,
                                .maybe_count = 9007199254740993,
                                .maybe_ratio = 1.0,
                                .maybe_name = "é",
                                .maybe_folder = "a b",
                                .names = {"a", "b, c"},
                                .counts = {1, -2},
                                .ratios = {},
                                .pair = {1e-4, 0.5},
                                .inner = {.type = "beta"}}));
}

TEST(Fields, UnsetSettingsKeepTheirDefaults) { EXPECT_EQ(read("inner:\nmaybe_count: null\n"), Everything{}); }

TEST(Fields, VariablesAreExpandedInEveryKind) {
  const ScopedVariable variable("STRETTO_TEST_COUNT", "3");
  EXPECT_EQ(read("count: ${STRETTO_TEST_COUNT}").count, 3);
  EXPECT_EQ(read("names: [\"n${STRETTO_TEST_COUNT}\"]").names[0], "n3");
}

TEST(Fields, OriginsContainGivenSettings) {
  Everything result;
  const Origins origins =
      read_fields(fields_of(result), parse_yaml("count: 2\ninner:\n  type: beta\n", "r.yaml"));
  EXPECT_TRUE(origins.given("inner.type"));
  EXPECT_FALSE(origins.given("ratio"));
  EXPECT_EQ(origins.label("inner.type"), "r.yaml:3:9: inner.type");
  EXPECT_EQ(origins.mention("count"), "count (r.yaml:1:8)");
  EXPECT_EQ(origins.label("ratio"), "ratio");
}

struct WithText {
  std::string text;
  int64_t count = 1;

  void fields(Fields& field) {
    field("text", text, "a text that may be empty");
    field("count", count, "a number");
  }
};

TEST(Fields, AnEmptyTextIsNotWritten) {
  WithText none;
  EXPECT_EQ(to_yaml(fields_of(none)), "count: 1\n") << "it could not be read";
}

struct WithFile {
  std::optional<FileOrSection> config;

  void fields(Fields& field) { field("config", config, "a file or its content"); }
};

TEST(Fields, AFileOrItsContent) {
  const ScopedVariable variable("STRETTO_TEST_COUNT", "3");
  WithFile read;
  const auto fields = fields_of(read);
  read_fields(fields, parse_yaml("config: small.json\n", "r.yaml"));
  EXPECT_EQ(read.config, FileOrSection("small.json"));
  EXPECT_EQ(to_yaml(fields), "config: small.json\n");

  YamlNode document = parse_yaml(
      "config:\n  layers: ${STRETTO_TEST_COUNT}\n  rate: 1e-5\n  act: silu\n  name: \"3\"\n  no: null\n  tied: false\n"
      "  rope: {factor: 2.0, sizes: [1, 2.5]}\n",
      "r.yaml");
  apply_override(document, "config.heads=4");
  const Origins origins = read_fields(fields, document);
  EXPECT_EQ(nlohmann::json(read.config->section),
            nlohmann::json::parse(
                R"({"layers": 3, "rate": 1e-5, "act": "silu", "name": "3", "no": null, "tied": false,
                                      "rope": {"factor": 2.0, "sizes": [1, 2.5]}, "heads": 4})"));
  EXPECT_EQ(origins.label("config.layers"), "r.yaml:2:11: config.layers");
  EXPECT_EQ(origins.label("config.rope.factor"), "r.yaml:8:18: config.rope.factor");
  EXPECT_EQ(origins.label("config.heads"), "--set config.heads=4: config.heads");
  EXPECT_EQ(to_yaml(fields),
            "config: {layers: 3, rate: 1.0e-05, act: silu, name: \"3\", \"no\": null, tied: false, "
            "rope: {factor: 2.0, sizes: [1, 2.5]}, heads: 4}\n");
  const auto refuses = [](const std::string& text, const auto&... named) {
    WithFile unread;
    EXPECT_THAT(message_of<ConfigError>([&] { read_fields(fields_of(unread), parse_yaml(text, "r.yaml")); }),
                has_all(named...));
  };
  refuses("config:\n  layers:\n", "r.yaml:2:3: config.layers: ", "value is empty");
  refuses("config: {rope: {factor: }}", "r.yaml:1:17: config.rope.factor: ", "value is empty");
  WithFile again;
  read_fields(fields_of(again), parse_yaml(to_yaml(fields), "again.yaml"));
  EXPECT_EQ(again.config, read.config);

  EXPECT_THAT(message_of<ConfigError>([&] { read_fields(fields, parse_yaml("config: [1]\n", "r.yaml")); }),
              has_all("r.yaml:1:9: config: ", "(path of a file, or a section)", "found a list"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                read_fields(fields, parse_yaml("config: {a: {b: [\"$${\", \"${\"]}}\n", "r.yaml"));
              }),
              HasSubstr("r.yaml:1:25: config.a.b: "));
  const ScopedVariable unset("STRETTO_TEST_UNSET", nullptr);
  EXPECT_THAT(message_of<UnsetVariableError>([&] {
                read_fields(fields, parse_yaml("config: {a: '${STRETTO_TEST_UNSET}'}\n", "r.yaml"));
              }),
              HasSubstr("r.yaml:1:13: config.a: the environment variable"));
}

void refuses_value(const std::string& yaml, const auto&... named) {
  EXPECT_THAT(message_of<ConfigError>([&] { read(yaml); }), has_all(named...)) << yaml;
}

TEST(Fields, UnknownKeysSuggestTheNearest) {
  refuses_value("flag: no\ncuont: 1\n", "r.yaml:2:1: cuont ", "did you mean \"count\"?");
  refuses_value("inner:\n  tpye: a\n", "r.yaml:2:3: inner.tpye ", "did you mean \"type\"?");
  refuses_value("only_a: 1\n", "r.yaml:1:1: only_a ", "did you mean \"inner.only_a\"?");
  refuses_value("inner: {count: 1}\n", "inner.count is not a setting", "\"count\" belongs to the top level");
  refuses_value("inner: {xyzzyplugh: 1}\n", "inner.xyzzyplugh is not a setting", "known here: type, only_a");
}

TEST(Fields, WrongTypesAreRefused) {
  refuses_value("flag: 1\n", "r.yaml:1:7: flag: \"1\" is neither true nor false");
  refuses_value("count: 1.5\n", "r.yaml:1:8: count: \"1.5\" is not a whole number");
  refuses_value("count: 99999999999999999999\n", "is not a whole number (of at most 64 bits)");
  refuses_value("ratio: fast\n", "ratio: \"fast\" is not a number");
  refuses_value("ratio: nan\n", "nan is not a finite number");
  refuses_value("ratio: 1e999\n", "ratio: \"1e999\" is not a number");
  refuses_value("maybe_ratio: inf\n", "inf is not a finite number");
  refuses_value("count: [1]\n", "count: expected a value (whole number), found a list");
  refuses_value("name: {a: b}\n", "name: expected a value (text), found a section");
  refuses_value("names: a\n", "names: expected a list [a, b, ...] of texts, found \"a\"");
  refuses_value("counts: [1, x]\n", "r.yaml:1:13: counts: \"x\" is not a whole number");
  refuses_value("counts: [1, ~]\n", "counts: expected a value (whole number), found nothing");
  refuses_value("pair: [0.1]\n", "pair: expected 2 numbers, found 1");
  refuses_value("inner: a\n", "r.yaml:1:8: inner must be a section");
  refuses_value("[1, 2]\n", "r.yaml:1:1: a recipe must be a section");
  refuses_value("count:\n", "count has no value", "(whole number)");
  refuses_value("name: ''\n", "r.yaml:1:7: name: the value is empty");
}

TEST(Fields, RangesAndChoicesAreChecked) {
  refuses_value("count: 0\n", "count: 0 is out of range", "from 1 to 10");
  refuses_value("count: 11\n", "count: 11 is out of range");
  refuses_value("ratio: 0\n", "ratio: 0 is out of range", "above 0 and below 1");
  refuses_value("ratio: 1.0\n", "1.0 is out of range");
  refuses_value("pair: [0.9, 1]\n", "r.yaml:1:13: pair: 1 is out of range", "at least 0 and below 1");
  refuses_value("inner:\n  type: bet\n", "r.yaml:2:9: inner.type: \"bet\"", "one of a, beta",
                "did you mean \"beta\"?");
}

TEST(Fields, ASettingThatDoesNotApplyIsRefused) {
  refuses_value("inner:\n  only_a: 1\n  type: beta\n", "r.yaml:2:11: inner.only_a does not apply",
                "with inner.type: beta, only with a", "change inner.type");
}

TEST(Fields, UndefinedVariablesNameThePlace) {
  const ScopedVariable unset("STRETTO_TEST_UNSET", nullptr);
  refuses_value("name: x\nfolder: ${STRETTO_TEST_UNSET}/a\n",
                "r.yaml:2:9: folder: ", "variable STRETTO_TEST_UNSET is not set");
}

TEST(Fields, DumpReadsBackAsTheSame) {
  Everything odd;
  EXPECT_EQ(read(to_yaml(fields_of(odd))), odd);
  odd = {.flag = true,
         .count = 10,
         .ratio = 0.1 + 0.2,
         .name = "a: \"b\" #c\n\x01 ${HOME} $${x} \\ \t 'é",
         .folder = "with space/~",
         .maybe_flag = true,
         .maybe_count = INT64_MIN,
         .maybe_ratio = 5e-324,
         .maybe_name = "null",
         .maybe_folder = "./-x",
         .names = {"1e5", "true", "OFF", "~", "a,b", "- x", "plain"},
         .counts = {1, INT64_MAX},
         .ratios = {1e300, 1, -0.0},
         .pair = {0, 1e-7},
         .inner = {.type = "beta"}};
  EXPECT_EQ(read(to_yaml(fields_of(odd))), odd);
}

TEST(Fields, DumpIsPlainYaml) {
  Everything value;
  value.inner.type = "beta";
  EXPECT_EQ(to_yaml(fields_of(value)),
            "flag: false\ncount: 1\nratio: 0.5\nname: x\nfolder: here\nnames: []\ncounts: []\nratios: []\n"
            "pair: [0.9, 0.999]\ninner:\n  type: beta\n");
  value.ratio = 5e-5;
  value.name = "off";
  EXPECT_THAT(to_yaml(fields_of(value)), AllOf(HasSubstr("ratio: 5.0e-05\n"), HasSubstr("name: \"off\"\n")));
}

TEST(Fields, HelpShowsTypeRangeConditionAndDefault) {
  Everything defaults;
  const std::string help = to_help(fields_of(defaults));
  EXPECT_THAT(help, StartsWith("  flag\n      a flag (true or false; default false)\n"));
  EXPECT_THAT(help, HasSubstr("  ratio\n      a ratio (number, above 0 and below 1; default 0.5)\n"));
  EXPECT_THAT(help,
              HasSubstr("\ninner: a section\n  inner.type\n      kind of inner (a | beta; default a)\n"));
  EXPECT_THAT(help, HasSubstr("for a (number, at least 0; only with type a; default 0.0)"));
  EXPECT_THAT(help, HasSubstr("  maybe_name\n      perhaps a name (text)\n"));
  EXPECT_THAT(help, HasSubstr("(list of 2 numbers, at least 0 and below 1; default [0.9,0.999])"));
}

TEST(Fields, SchemaHasTheSameRules) {
  Everything defaults;
  const auto schema = to_schema(fields_of(defaults), "everything");
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  const auto& properties = schema["properties"];
  EXPECT_EQ(properties.size(), 15u);
  EXPECT_EQ(properties["count"].dump(),
            R"({"description":"a count","anyOf":[{"type":"integer","minimum":1.0,"maximum":10.0},)"
            R"({"$ref":"#/$defs/variable"}],"default":1})");
  EXPECT_EQ(properties["name"].dump(), R"({"description":"a name","type":"string","default":"x"})");
  EXPECT_EQ(properties["maybe_name"]["anyOf"].dump(), R"([{"type":"string"},{"type":"null"}])");
  EXPECT_EQ(properties["ratio"]["anyOf"][0]["exclusiveMinimum"], 0);
  EXPECT_EQ(properties["pair"]["minItems"], 2);
  EXPECT_EQ(properties["inner"]["properties"]["type"]["anyOf"][0]["enum"].dump(), R"(["a","beta"])");
  EXPECT_EQ(properties["inner"]["additionalProperties"], false);
  EXPECT_THAT(properties["maybe_count"].dump(), Not(HasSubstr("default")));
}

}  // namespace
}  // namespace stretto::settings
