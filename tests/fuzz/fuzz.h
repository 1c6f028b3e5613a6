#pragma once

#include <random>
#include <string>
#include <vector>

// One program per parser. A target is a file NAME_fuzz.cpp that defines the two functions below and a line
// `stretto_fuzz(NAME layer...)` in CMakeLists.txt; the library of driver.cpp, which all targets link, has
// main().
namespace stretto::fuzz {

// Valid inputs, from which the others are derived, preferably small. Files in corpus/NAME/ are added to them.
std::vector<std::string> seeds();

// Parses one input. It may refuse it by throwing a stretto::Error. A finding is anything else: another
// exception (also std::bad_alloc), a signal, a sanitizer's report, more than 10 s of processor time for one
// input, and a std::logic_error by which the target itself reports that a result breaks a rule (see require).
void run(const std::string& input);

// Optional: changes values of `input` and keeps its form (lengths, offsets, nesting), so that the result gets
// past the first checks. `input` is one that run() accepts. If a target defines it, it makes half of the
// mutations; the others change bytes (mutate.h).
std::string mutate_fields(const std::string& input, std::mt19937_64& random) __attribute__((weak));

// Checks a rule of accepted inputs, such as "parsing what was written gives an equal value".
void require(bool holds, const char* rule);

}  // namespace stretto::fuzz
