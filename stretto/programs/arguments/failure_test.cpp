#include "stretto/programs/arguments/failure.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/settings/scoped_variable_support.h"

namespace stretto::arguments {
namespace {

template <class Throw>
Failure failure_of(const Throw& body) {
  try {
    body();
  } catch (...) {
    return describe_exception();
  }
  return {"nothing was thrown", 0};
}

TEST(Failure, ErrorsHaveTheirOwnExitCode) {
  const Failure failure = failure_of([] { throw ConfigError("wrong"); });
  EXPECT_EQ(failure.message, "wrong");
  EXPECT_EQ(failure.exit_code, 2);
}

TEST(Failure, MalformedDataIsNotRetried) {
  EXPECT_EQ(failure_of([] { throw DataError("a.tsv:3: no label"); }).exit_code, 2);
  EXPECT_EQ(failure_of([] { throw IoError("disk full"); }).exit_code, 1);
}

TEST(Failure, PathsThatTheSystemRefusesAreNamed) {
  const std::string path = "/" + std::string(300, 'x');
  const Failure failure = failure_of([&] { (void)std::filesystem::exists(path); });
  EXPECT_EQ(failure.message, "cannot access " + path + ": File name too long");
  EXPECT_EQ(failure.exit_code, 1);
}

TEST(Failure, LackOfMemoryIsNotAnInternalError) {
  for (const Failure& failure :
       {failure_of([] { throw std::bad_alloc(); }), failure_of([] {
          throw std::runtime_error("DefaultCPUAllocator: can't allocate memory: 8 bytes\nat x.cpp");
        })}) {
    EXPECT_THAT(failure.message, ::testing::StartsWith("out of memory"));
    EXPECT_THAT(failure.message, ::testing::Not(::testing::HasSubstr("x.cpp")));
    EXPECT_EQ(failure.exit_code, 1);
  }
}

TEST(Failure, AnErrorOfLibtorchIsOneSentence) {
  const auto fail = [] {
    throw std::runtime_error(
        "shapes differ (in training_step of step 7)\nException raised from f at /x.cpp:1\nframe #0: f");
  };
  const settings::ScopedVariable unset("TORCH_SHOW_CPP_STACKTRACES", nullptr);
  EXPECT_THAT(failure_of(fail).message,
              ::testing::AllOf(has_all("libtorch: shapes differ (in training_step of step 7)",
                                       "TORCH_SHOW_CPP_STACKTRACES=1"),
                               ::testing::Not(::testing::HasSubstr("\n"))));
  const settings::ScopedVariable set("TORCH_SHOW_CPP_STACKTRACES", "1");
  EXPECT_THAT(failure_of(fail).message, ::testing::HasSubstr("\nframe #0: f"));
}

TEST(Failure, UnexpectedExceptionsAreInternalErrors) {
  EXPECT_EQ(failure_of([] { throw std::logic_error("oops"); }).message, "unexpected exception: oops");
  EXPECT_EQ(failure_of([] { throw std::logic_error("oops"); }).exit_code, 70);
}

}  // namespace
}  // namespace stretto::arguments
