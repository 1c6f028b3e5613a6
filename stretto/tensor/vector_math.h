#pragma once

namespace stretto {

// Initialises the library of elementary functions (at::tanh, exp, log, erf of CPU tensors). Call it before a
// process computes in several threads: MKL in libtorch 2.13 selects its code at the first call, and if
// several threads make that call concurrently, some compute with errors of 5e-5 to 9e-5 instead of 1e-7 (in
// 5 % of new processes with four threads on an Intel Xeon).
void prepare_vector_math();

}  // namespace stretto
