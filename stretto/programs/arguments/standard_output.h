#pragma once

namespace stretto::arguments {

// Flushes what was printed (std::cout, stdout). Throws IoError with the system's reason if any of it could not be written: a full
// disk, a closed descriptor.
void flush_standard_output();

}  // namespace stretto::arguments
