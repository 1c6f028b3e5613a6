#include "stretto/base/precision.h"

#include <gmock/gmock.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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
    EXPECT_THAT([&name = name] { parse_precision(name); }, ThrowsMessage<ConfigError>(HasSubstr(reason)));
  EXPECT_THAT([] { parse_precision("bf61"); },
              ThrowsMessage<ConfigError>(HasSubstr("did you mean \"bf16\"?")));
}

}  // namespace
}  // namespace stretto
