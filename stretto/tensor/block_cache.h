#pragma once

#include <cstddef>

namespace stretto {

// Makes torch keep the memory of large tensors on CPU when they are freed, and give it out again. A training step asks
// for the same few sizes over and over; the C library hands such blocks back to the kernel each time, which then clears
// every page of them anew: a tenth of a step. Blocks of some MB lie on huge pages where the kernel has some.
//
// What is kept and what is in use never exceed together by more than a quarter the most that was in use at once; what lay
// unused longest goes first. For the whole process, from the first call on; any thread.
void reuse_tensor_memory();

// Gives back what is kept, of this cache and of the C library, and forgets how much was in use before: for the end of
// a set-up that needed other sizes than what comes. Any thread.
void trim_tensor_memory();

// Bytes of such blocks: held by tensors, and kept for others.
struct TensorMemory {
  size_t in_use = 0;
  size_t kept = 0;
};
TensorMemory tensor_memory();

}  // namespace stretto
