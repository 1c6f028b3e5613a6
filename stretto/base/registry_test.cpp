#include "stretto/base/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using testing::ElementsAre;

struct Animal {
  std::string name;
  int legs = 4;
};

// Like the types of a section of a recipe, whose names are in their settings.
struct Nested {
  Animal animal;
  const std::string& name() const { return animal.name; }
};

TEST(Registry, FindsEntriesInTheOrderOfRegistration) {
  Registry<Animal> animals("an animal", {{"dog"}, {"hen", 2}});
  animals.add({"ant", 6});
  EXPECT_THAT(animals.names(), ElementsAre("dog", "hen", "ant"));
  EXPECT_EQ(animals.at("ant", "zoo.yaml:1").legs, 6);
  EXPECT_EQ(animals.find("hen")->legs, 2);
  EXPECT_EQ(animals.find("cat"), nullptr);
}

TEST(Registry, RefusesUnknownAndRepeatedNames) {
  Registry<Nested> animals("an animal", {{{"dog"}}, {{"hen", 2}}});
  EXPECT_THAT(message_of<ConfigError>([&] { animals.at("hem", "zoo.yaml:1"); }),
              has_all("zoo.yaml:1: \"hem\"", "not an animal", "did you mean \"hen\"?", "(known: dog, hen)"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                animals.add({{"dog", 3}});
              }),
              has_all("\"dog\"", "registered twice", "an animal"));
  EXPECT_EQ(animals.at("dog", "").animal.legs, 4);
}

TEST(Registry, ACopyIsIndependent) {
  const Registry<Animal> bundled("an animal", {{"dog"}});
  Registry<Animal> own = bundled;
  own.add({"hen", 2});
  EXPECT_THAT(bundled.names(), ElementsAre("dog"));
}

}  // namespace
}  // namespace stretto
