#include "stretto/cluster/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"

namespace stretto::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string interface_refusal(const std::string& interface) {
  try {
    address_on(interface, "--interface");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Interfaces, AnAddressIsFoundByNameAndNetwork) {
  EXPECT_EQ(address_on("lo", "--interface", {"127.0.0.1", 1}), "127.0.0.1");
  EXPECT_EQ(address_on("127.0.0.0/8", "--interface"), "127.0.0.1");
  EXPECT_EQ(address_on("127.0.0.1/32", "--interface"), "127.0.0.1");
  EXPECT_EQ(own_address({"127.0.0.1", 1}, [](const char*) { return std::optional<std::string>("lo"); }),
            "127.0.0.1");
  EXPECT_EQ(own_address({"127.0.0.1", 1}, [](const char*) { return std::nullopt; }), "127.0.0.1");
}

TEST(Interfaces, MissingInterfacesAreRefusedWithAList) {
  EXPECT_THAT(interface_refusal("eth77"),
              AllOf(HasSubstr("--interface: \"eth77\": this host has no address there"),
                    HasSubstr("its interfaces are "), HasSubstr("lo (127.0.0.1)")));
  EXPECT_THAT(interface_refusal("198.51.100.0/24"), HasSubstr("this host has no address there"));
  for (const char* text : {"10.0.0.0/33", "10.0.0/8", "fd77::/129", "/8", "10.0.0.0/", "10.0.0.0/x"})
    EXPECT_THAT(interface_refusal(text), HasSubstr("is not a network; expected for example 10.7.0.0/16"))
        << text;
}

}  // namespace
}  // namespace stretto::cluster
