#pragma once

namespace stretto::arguments {

// Flushes std::cout and stdout. Throws IoError with the system's reason if any output could not be written: a
// full disk, a closed descriptor.
void flush_standard_output();

}  // namespace stretto::arguments
