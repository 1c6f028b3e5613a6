#pragma once

namespace stretto::fuzz {

// Whether the code that ran since the last call reached something new: a pair of blocks in a row, or one of
// them much more often than before. Always false if the program is built without -fsanitize-coverage=trace-pc
// (preset fuzz).
bool reached_something_new();

// Whether the program is built with coverage. Call it after an input has run.
bool measured();

}  // namespace stretto::fuzz
