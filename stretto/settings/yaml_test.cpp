#include "stretto/settings/yaml.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/settings/yaml_override.h"

namespace stretto::settings {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

TEST(Yaml, KeepsTextAndPlaces) {
  const YamlNode root = parse_yaml("# a comment\na: 5e-5\nb:\n  c: [x, \"y\"]\n  d:\n", "r.yaml");
  EXPECT_EQ(root.find("a")->text, "5e-5");
  EXPECT_EQ(root.find("a")->place, "r.yaml:2:4");
  EXPECT_EQ(root.find("a")->key_place, "r.yaml:2:1");
  const YamlNode* c = root.find("b")->find("c");
  ASSERT_EQ(c->children.size(), 2u);
  EXPECT_EQ(c->children[1].text, "y");
  EXPECT_EQ(c->children[1].place, "r.yaml:4:10");
  EXPECT_EQ(root.find("b")->find("d")->kind, YamlNode::Kind::null);
  EXPECT_EQ(root.find("z"), nullptr);
}

TEST(Yaml, EmptyValuesDifferFromWrittenNulls) {
  const auto is_empty = [](const std::string& text) {
    const YamlNode root = parse_yaml(text, "r.yaml");
    EXPECT_EQ(root.find("a")->kind, YamlNode::Kind::null) << text;
    return root.find("a")->is_empty;
  };
  for (const char* empty : {"a:", "a:\n", "a: # null\n", "a:\nnullable: 1\n", "a:\n\n  # null\nb: null\n",
                            "{a: , b: ~}", "\xef\xbb\xbf\xc3\xa9: 1\r\na:\r\n"})
    EXPECT_TRUE(is_empty(empty)) << empty;
  for (const char* null : {"a: null", "a: ~\n", "a: NULL # none\n", "a:\n  Null\nb: 1\n", "{a: null}",
                           "{a: ~, b: 1}", "\xef\xbb\xbf\xc3\xa9: 1\r\na: null\r\n"})
    EXPECT_FALSE(is_empty(null)) << null;
}

TEST(Yaml, TextsByName) {
  EXPECT_THAT(texts_by_name(parse_yaml("a: {b: 5e-5, c: [x, \"y\"]}\nd:\n", "r.yaml")),
              ElementsAre(Pair("a.b", "5e-5"), Pair("a.c", "[x, y]"), Pair("d", "null")));
}

void refuses(const std::string& text, const std::string& begin, const std::string& reason) {
  EXPECT_THAT(message_of<ConfigError>([&] { parse_yaml(text, "r.yaml"); }),
              AllOf(StartsWith(begin), HasSubstr(reason)))
      << text.substr(0, 80);
}

TEST(Yaml, InvalidYamlNamesLineAndColumn) {
  refuses("a: 1\nb: c: d\n", "r.yaml:2:5: not valid YAML: ", "illegal map value");
  refuses("a: [1, 2\nb: 3\n", "r.yaml:2:2: ", "end of sequence flow not found");
  refuses("a: 1\n\tb: 2\n", "r.yaml:2:1: ", "a tab in the indentation");
  refuses("a: *nothing\n", "r.yaml:1:4: ", "anchor is not defined");
}

TEST(Yaml, InvalidJsonIsNotCalledYaml) {
  const auto error_of = [](const char* name, const char* text) {
    try {
      parse_yaml(text, name);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of("ds.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n"),
              StartsWith("ds.json:3:5: not valid JSON: "));
  EXPECT_THAT(error_of("ds.json", "{\"a\": {\"b\": 1}"), StartsWith("ds.json:1:15: not valid JSON: "));
  EXPECT_THAT(error_of("ds", "{ \"a\": [1}"), StartsWith("ds:1:10: not valid JSON: "));
  EXPECT_THAT(error_of("ds.json", R"({"a": "\ud83d\ude00"})"), HasSubstr(": this JSON cannot be read: "));
  EXPECT_THAT(error_of("r.yaml", "{a: [1}"), HasSubstr("not valid YAML"));
}

TEST(Yaml, ACommaBeforeABracketIsNotJson) {
  const auto refuses_json = [](const char* text, const char* message) {
    EXPECT_THAT(message_of<ConfigError>([&] { parse_yaml(text, "r.json"); }), HasSubstr(message));
  };
  const char* json = "{\"a\": \"\\\",]\",\n \"b\": [1, 2], # ,]\n \"c\": {\"d\": 1, \n}}";
  EXPECT_EQ(texts_by_name(parse_yaml(json, "r.yaml")).at("c.d"), "1");
  refuses_json(json, "r.json:3:14: not valid JSON: a comma before }");
  refuses_json("{\"a\": [1,2,]}", "r.json:1:11: not valid JSON: a comma before ]");
}

TEST(Yaml, UnsupportedYamlIsRefused) {
  refuses("", "r.yaml: ", "the file is empty");
  refuses("# only a comment\n", "r.yaml: ", "the file is empty");
  refuses("---\na: 1\n---\nb: 2\n", "r.yaml:3:1: ", "a second document begins");
  refuses("a: 1\nb: 2\na: 3\n", "r.yaml:3:1: ", "the key \"a\" was already set at r.yaml:1:1");
  refuses("[a, b]: 1\n", "r.yaml:1:1: ", "a key must be plain text");
  refuses("a: &x 1\nb: *x\n", "r.yaml:2:4: ", "aliases (*name) are not supported");
  refuses("a: !!python/object:os.system x\n",
          "r.yaml:1:4: ", "the tag tag:yaml.org,2002:python/object:os.system");
  refuses("a: 1\nb: x\x04\nc: 2\n", "r.yaml:2:5: ", "the byte 0x04 is not text");
  refuses(std::string("a: \0", 4), "r.yaml:1:4: ", "the byte 0x00 is not text");
}

TEST(Yaml, AQuoteLeftOpenIsRefused) {
  refuses("a: 1\nb: \"x\nc: 3\n", "r.yaml:2:4: ", "this quote is never closed");
  refuses("b: 'it''s\n", "r.yaml:1:4: ", "this quote is never closed");
  EXPECT_EQ(parse_yaml("b: 'it''s'", "r.yaml").find("b")->text, "it's");
  EXPECT_EQ(parse_yaml(R"(b: "a\"b")", "r.yaml").find("b")->text, "a\"b");
}

TEST(Yaml, SizeAndNestingAreBounded) {
  const auto repeat = [](const std::string& piece, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += piece;
    return text;
  };
  refuses(repeat("#", (1 << 20) + 1), "r.yaml: ", "larger than 1048576 bytes");
  refuses("a: " + repeat("[", 100000), "r.yaml:1:", "nested deeper than 32 levels");
  refuses(repeat("- ", 100000), "r.yaml:1:", "nested deeper than 32 levels");
  refuses(repeat("{a: ", 100000), "r.yaml:1:", "nested deeper than 32 levels");
  EXPECT_NO_THROW(parse_yaml("a: " + repeat("[", 31) + repeat("]", 31), "r.yaml"));
}

TEST(Yaml, TheLastValueOfARepeatedKeyCountsOnRequest) {
  std::vector<std::string> repeated;
  const YamlNode root = parse_yaml("a: {x: 1}\nb: 2\na: 3\na: 4\n", "r.yaml", repeated);
  EXPECT_EQ(root.children.size(), 2u);
  EXPECT_EQ(root.find("a")->text, "4");
  EXPECT_EQ(root.find("b")->text, "2");
  ASSERT_EQ(repeated.size(), 2u);
  EXPECT_THAT(repeated[0],
              ::testing::AllOf(::testing::HasSubstr("r.yaml:3:1:"), ::testing::HasSubstr("r.yaml:1:1")));
  EXPECT_THAT(repeated[1],
              ::testing::AllOf(::testing::HasSubstr("r.yaml:4:1:"), ::testing::HasSubstr("r.yaml:3:1")));
}

YamlNode overridden(const std::string& text, std::initializer_list<const char*> settings) {
  YamlNode root = parse_yaml(text, "r.yaml");
  for (const char* setting : settings) apply_override(root, setting);
  return root;
}

TEST(Override, ReplacesOrAdds) {
  const YamlNode root = overridden("a:\n  b: 1\n", {"a.b=2", "a.c=x=y: z", "d.e.f=[1, 2]", "g = \"null\""});
  EXPECT_EQ(root.find("a")->find("b")->text, "2");
  EXPECT_EQ(root.find("a")->find("b")->place, "--set a.b=2");
  EXPECT_EQ(root.find("a")->find("c")->text, "x=y: z");
  EXPECT_EQ(root.find("d")->find("e")->find("f")->children[1].text, "2");
  EXPECT_EQ(root.find("d")->find("e")->find("f")->children[1].place, "--set d.e.f=[1, 2]");
  EXPECT_EQ(root.find("g")->text, "null");
}

TEST(Override, NullRemovesASetting) {
  const YamlNode root = overridden("a:\n  b: 1\n", {"a.b=null"});
  EXPECT_EQ(root.find("a")->find("b")->kind, YamlNode::Kind::absent);
}

TEST(Override, TheLastOneIsUsed) {
  EXPECT_EQ(overridden("a: 1\n", {"a=2", "a=3"}).find("a")->text, "3");
  EXPECT_EQ(overridden("a: 1\n", {"a=null", "a.b=3"}).find("a")->find("b")->text, "3");
}

TEST(Override, MalformedOverridesAreRefused) {
  const auto refuses_setting = [](const char* setting, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { overridden("a: 1\n", {setting}); }), has_all(named...))
        << setting;
  };
  refuses_setting("a.b", "--set a.b: expected KEY=VALUE");
  refuses_setting("=1", "--set =1: a key is missing");
  refuses_setting("a..b=1", "a key is missing");
  refuses_setting("a.b=1", "--set a.b=1: a is not a section", "r.yaml:1:4", "no \"b\"");
  refuses_setting("c=[1", "--set c=[1: value:1:1: not valid YAML");
}

TEST(Yaml, TabsInTheIndentationAreNamed) {
  EXPECT_THAT(message_of<ConfigError>([] { parse_yaml("a:\n  \tb: 1\n", "r.yaml"); }),
              has_all("r.yaml:2:3: a tab ", "indented by spaces"));
  EXPECT_NO_THROW(parse_yaml("a: 1\t# a comment\n\t\n\t# another\n", "r.yaml"));
}

}  // namespace
}  // namespace stretto::settings
