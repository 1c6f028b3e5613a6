#pragma once

#include <cstdint>
#include <string>

namespace stretto::lite {

// The state of torch's default CPU generator, which shuffles, initialises and drops.
std::string random_state();
void set_random_state(const std::string& state);

// Gives every rank but the first random numbers of its own, derived from the state that rank 0 and it have in common.
void separate_random_numbers(int rank);

}  // namespace stretto::lite
