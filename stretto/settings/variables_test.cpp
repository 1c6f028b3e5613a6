#include "stretto/settings/variables.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/settings/scoped_variable_support.h"

namespace stretto::settings {
namespace {

TEST(Variables, AreReplacedByTheEnvironment) {
  const ScopedVariable data("STRETTO_TEST_DATA", "/data");
  const ScopedVariable empty("STRETTO_TEST_EMPTY", "");
  const ScopedVariable unset("STRETTO_TEST_UNSET", nullptr);
  EXPECT_EQ(expand_variables("${STRETTO_TEST_DATA}/sst2"), "/data/sst2");
  EXPECT_EQ(expand_variables("a${STRETTO_TEST_EMPTY}b"), "ab");
  EXPECT_EQ(expand_variables("${STRETTO_TEST_DATA:-x}${STRETTO_TEST_UNSET:-y}${STRETTO_TEST_EMPTY:-z}"),
            "/datayz");
  EXPECT_EQ(expand_variables("costs 5$ or $HOME"), "costs 5$ or $HOME");
}

TEST(Variables, ValuesAreNotExpandedAgain) {
  const ScopedVariable sly("STRETTO_TEST_SLY", "${HOME}");
  EXPECT_EQ(expand_variables("${STRETTO_TEST_SLY}"), "${HOME}");
}

TEST(Variables, EscapingIsTheInverse) {
  for (const std::string text : {"${A}", "$${A}", "$$${", "$", "a ${ b", "plain"}) {
    EXPECT_EQ(expand_variables(escape_variables(text)), text);
  }
}

TEST(Variables, UnusableReferencesAreRefused) {
  const ScopedVariable unset("STRETTO_TEST_UNSET", nullptr);
  const auto refuses = [](const char* text, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { expand_variables(text); }), has_all(named...)) << text;
  };
  refuses("${STRETTO_TEST_UNSET}", "STRETTO_TEST_UNSET is not set", "write ${STRETTO_TEST_UNSET:-default}");
  refuses("a/${OPEN", "has a \"${\" without its \"}\"");
  refuses("${}", "\"${}\" cannot be expanded");
  refuses("${1A}", "cannot be expanded");
  refuses("${A-b}", "write ${NAME} or ${NAME:-default}");
  refuses("${A:-${B:-c}}", "without nesting");
}

}  // namespace
}  // namespace stretto::settings
