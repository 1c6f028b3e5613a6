#pragma once

namespace stretto {

// Prepares the library of elementary functions (at::tanh, exp, log, erf of CPU tensors), before a process computes in several threads.
// MKL of libtorch 2.13 chooses its code at the first call: when threads make that call at the same time, some compute with errors of
// 5e-5 to 9e-5 instead of 1e-7 (seen in 5 % of new processes with four threads on an Intel Xeon).
void prepare_vector_math();

}  // namespace stretto
