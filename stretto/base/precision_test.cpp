#include "stretto/base/precision.h"

#include <gmock/gmock.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

enum class Cell { lstm, gru };
constexpr auto names_of(Cell) { return std::to_array<std::string_view>({"LSTM", "GRU"}); }

TEST(EnumNames, AreFoundInBothDirections) {
  static_assert(NamedEnum<Cell> && !NamedEnum<int>);
  EXPECT_EQ(name_of(Cell::gru), "GRU");
  EXPECT_EQ(find_enum<Cell>("LSTM"), Cell::lstm);
  EXPECT_EQ(find_enum<Cell>("lstm"), std::nullopt);
  EXPECT_EQ(enum_names<Cell>(), (std::vector<std::string>{"LSTM", "GRU"}));
}

TEST(Precision, SpellingsAreAcceptedAndRefusalsGiveTheReason) {
  for (const std::string& name : enum_names<Precision>()) EXPECT_EQ(name_of(parse_precision(name)), name);
  for (const auto& [spelling, name] : precision_spellings())
    EXPECT_EQ(name_of(parse_precision(spelling)), name);
  for (const auto& [name, reason] : refused_precisions())
    EXPECT_THAT(message_of<ConfigError>([&name = name] { parse_precision(name); }), HasSubstr(reason));
  EXPECT_THAT(message_of<ConfigError>([] { parse_precision("bf61"); }), HasSubstr("did you mean \"bf16\"?"));
}

}  // namespace
}  // namespace stretto
